//! A subscriber that keeps what it is told; it judges nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A span or an event.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    pub(crate) is_span: bool,
    /// The fields of the span that an event names as its parent.
    pub(crate) parent: Option<BTreeMap<String, String>>,
    pub(crate) fields: BTreeMap<String, String>,
}

/// Everything of this crate's that was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listener {
    told: Arc<Mutex<Vec<Told>>>,
    spans: Arc<Mutex<BTreeMap<u64, BTreeMap<String, String>>>>,
    next: Arc<AtomicU64>,
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Listener {
    /// Listens to this thread while it acts; what was told.
    pub(crate) fn to(act: impl FnOnce()) -> Vec<Told> {
        let listener = Listener::default();
        tracing::subscriber::with_default(listener.clone(), act);
        std::mem::take(&mut *listener.told.lock().unwrap())
    }

    fn keep(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "postern"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let (name, level) = (attributes.metadata().name(), *attributes.metadata().level());
        let fields = fields.0;
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.spans.lock().unwrap().insert(id, fields.clone());
        self.keep(Told { name, level, is_span: true, parent: None, fields });
        Id::from_u64(id)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (name, level) = (event.metadata().name(), *event.metadata().level());
        let spans = self.spans.lock().unwrap();
        let parent = event.parent().and_then(|id| spans.get(&id.into_u64()).cloned());
        drop(spans);
        self.keep(Told { name, level, is_span: false, parent, fields: fields.0 });
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}
