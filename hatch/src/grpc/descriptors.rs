//! The methods of descriptor sets, by their full names. Messages and types are not looked at.

use std::collections::BTreeSet;

use prost::Message;
use prost_types::FileDescriptorSet;

use super::error::GrpcHatchError;

/// The full names of all methods that these sets describe.
pub(super) fn methods(sets: &[Vec<u8>]) -> Result<BTreeSet<String>, GrpcHatchError> {
    let mut methods = BTreeSet::new();
    for set in sets {
        let set = FileDescriptorSet::decode(set.as_slice())
            .map_err(|error| GrpcHatchError::Descriptors { reason: error.to_string() })?;
        for file in &set.file {
            let package = Some(file.package()).filter(|package| !package.is_empty());
            for service in &file.service {
                let name = service.name();
                let name = package.map_or(name.to_owned(), |package| format!("{package}.{name}"));
                let own = service.method.iter().map(|own| format!("/{name}/{}", own.name()));
                methods.extend(own);
            }
        }
    }
    Ok(methods)
}

/// The name that was probably meant.
pub(super) fn nearest(method: &str, described: &BTreeSet<String>) -> Option<String> {
    let slips = |other: &String| strsim::osa_distance(method, other);
    let close = described.iter().map(|other| (slips(other), other));
    let last = |method: &str| method.rsplit_once('/').map(|(_, last)| last.to_owned());
    let (slips, other) = close.min_by_key(|(slips, _)| *slips)?;
    // The same method of a service by another name was meant too.
    (slips <= 1 + method.len() / 6 || last(method) == last(other)).then(|| other.clone())
}

#[cfg(test)]
mod tests {
    use postern_proto::greeter;

    use super::{methods, nearest};

    #[test]
    fn the_nearest_name_is_found_or_none() {
        let described = methods(&[greeter::DESCRIPTORS.to_vec()]).unwrap();
        let rows = [
            ("/greeter.Greeter/SayHelo", Some("/greeter.Greeter/SayHello")),
            ("/greeter.Greeter/sayhello", Some("/greeter.Greeter/SayHello")),
            ("/Greeter/SayHello", Some("/greeter.Greeter/SayHello")),
            ("/greeter.Greeter/GreetEvery", Some("/greeter.Greeter/GreetEach")),
            ("/repo.Repository/Push", None),
        ];
        for (method, meant) in rows {
            assert_eq!(nearest(method, &described).as_deref(), meant, "{method}");
        }
    }
}
