//! The host's service: rows to whoever may ask for them. Which of its methods a guest may call is
//! the hatch's to say.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use postern_proto::penguins::penguins_server::Penguins;
use postern_proto::penguins::{Query, Removed, Row};
use tokio::sync::mpsc::channel;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::data;

/// Rows that wait for a guest to take them; the query waits with them.
const ROWS_AHEAD: usize = 64;

/// The table, as a service. Clones are the same one.
#[derive(Debug, Clone)]
pub struct PenguinTable {
    database: PathBuf,
    calls: Arc<Calls>,
}

/// What was served so far, of each method.
#[derive(Debug, Default)]
struct Calls {
    rows: AtomicU64,
    remove: AtomicU64,
}

impl PenguinTable {
    /// The table of this database, which is opened for each call.
    pub fn new(database: impl Into<PathBuf>) -> PenguinTable {
        PenguinTable { database: database.into(), calls: Arc::default() }
    }

    /// How many calls of `Rows` reached it.
    #[must_use]
    pub fn rows_calls(&self) -> u64 {
        self.calls.rows.load(Ordering::Relaxed)
    }

    /// How many calls of `Remove` reached it.
    #[must_use]
    pub fn remove_calls(&self) -> u64 {
        self.calls.remove.load(Ordering::Relaxed)
    }
}

#[tonic::async_trait]
impl Penguins for PenguinTable {
    type RowsStream = ReceiverStream<Result<Row, Status>>;

    async fn rows(&self, request: Request<Query>) -> Result<Response<Self::RowsStream>, Status> {
        self.calls.rows.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel(ROWS_AHEAD);
        let (database, query) = (self.database.clone(), request.into_inner());
        // The guest may go away at any row: then the query ends too.
        drop(spawn_blocking(move || {
            let read =
                data::rows(&database, &query, &mut |row| sender.blocking_send(Ok(row)).is_ok());
            // What the database says is the host's affair.
            if read.is_err() {
                sender.blocking_send(Err(unavailable())).ok();
            }
        }));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn remove(&self, request: Request<Query>) -> Result<Response<Removed>, Status> {
        self.calls.remove.fetch_add(1, Ordering::Relaxed);
        let (database, query) = (self.database.clone(), request.into_inner());
        let removed = spawn_blocking(move || data::remove(&database, &query)).await;
        match removed {
            Ok(Ok(rows)) => {
                let rows = u64::try_from(rows).unwrap_or(u64::MAX);
                Ok(Response::new(Removed { rows }))
            }
            Ok(Err(_)) | Err(_) => Err(unavailable()),
        }
    }
}

fn unavailable() -> Status {
    Status::unavailable("the table cannot be read now")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use tempfile::TempDir;
    use tokio_stream::StreamExt;

    use super::*;

    pub(crate) const TABLE: &str = "\
species,island,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g,sex,year
Adelie,Torgersen,39.1,18.7,181,3750,male,2007
Adelie,Dream,NA,NA,NA,NA,NA,2007
Gentoo,Biscoe,46,14,215,5000,female,2008
";

    /// A small database and the directory that it goes with.
    pub(crate) fn database() -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let table = directory.path().join("penguins.csv");
        std::fs::write(&table, TABLE).unwrap();
        let database = directory.path().join("penguins.sqlite");
        data::load(&table, &database).unwrap();
        (directory, database)
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    async fn rows_of(table: &PenguinTable) -> Vec<Result<Row, tonic::Code>> {
        let stream = table.rows(Request::new(Query::default())).await.unwrap().into_inner();
        stream.map(|row| row.map_err(|status| status.code())).collect().await
    }

    /// The method that guests may not call does what it says: a refusal is worth something.
    #[test]
    fn each_method_does_what_it_says() {
        let (_directory, path) = database();
        let table = PenguinTable::new(&path);
        block_on(async {
            assert_eq!(rows_of(&table).await.len(), 3);
            let adelie = Query { species: Some("Adelie".into()), ..Query::default() };
            let removed = table.remove(Request::new(adelie)).await.unwrap();
            assert_eq!(removed.into_inner().rows, 2);
            assert_eq!(rows_of(&table).await.len(), 1);
        });
        assert_eq!((table.rows_calls(), table.remove_calls()), (2, 1));
        assert_eq!(data::count(&path).unwrap(), 1);
    }

    #[test]
    fn a_database_that_is_gone_is_unavailable_and_no_more() {
        let table = PenguinTable::new(Path::new("/no/such/database"));
        let rows = block_on(rows_of(&table));
        assert_eq!(rows, [Err(tonic::Code::Unavailable)]);
    }
}
