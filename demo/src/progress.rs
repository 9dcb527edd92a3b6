//! How the first use gets on, on stderr: a bar on a terminal, a line for each part elsewhere.

use std::io::{IsTerminal, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use postern_demo::{PARTS, Progress};

const STYLE: &str = "{bar:24} {pos:>2}/{len} {wide_msg} {elapsed}";

/// What fits our stderr.
pub(crate) fn new() -> Box<dyn Progress> {
    match std::io::stderr().is_terminal() {
        true => Box::new(Bar(None)),
        false => Box::new(Lines),
    }
}

fn first_line(cache: &Path) -> String {
    format!("postern demo: the first use makes what it needs in {}", cache.display())
}

/// What is said to a closed stderr is lost, and the work goes on.
fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}

struct Bar(Option<ProgressBar>);

impl Progress for Bar {
    fn begin(&mut self, cache: &Path) {
        say(&first_line(cache));
        let bar = ProgressBar::new(PARTS);
        let style = ProgressStyle::with_template(STYLE);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        // pip is silent for long while it installs: the clock shows that it goes on.
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        self.0 = Some(bar);
    }

    fn part(&mut self, done: u64, next: &str) {
        if let Some(bar) = &self.0 {
            bar.set_position(done);
            bar.set_message(next.to_owned());
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}

struct Lines;

impl Progress for Lines {
    fn begin(&mut self, cache: &Path) {
        say(&first_line(cache));
    }

    fn part(&mut self, done: u64, next: &str) {
        say(&format!("postern demo: {done}/{PARTS} {next}"));
    }

    fn end(&mut self) {}
}
