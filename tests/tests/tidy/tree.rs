//! The files of the repository, read once; which rule applies to which is decided elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A text file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the repository.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    pub(crate) fn is(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|own| own == extension)
    }
}

/// Directories that are nobody's source.
const NOT_OURS: [&str; 2] = ["target", ".git"];

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let mut files = Vec::new();
    collect(&root(), &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
});

/// Every text file of the repository.
pub(crate) fn files() -> &'static [File] {
    &FILES
}

/// One text file, if it is there.
pub(crate) fn file(path: &str) -> Option<&'static File> {
    files().iter().find(|file| file.path == Path::new(path))
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn collect(directory: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
            collect(&path, files);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            files.push(File::new(path.strip_prefix(root()).unwrap(), text));
        }
    }
}
