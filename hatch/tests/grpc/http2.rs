//! A client that can send whatever HTTP/2 can carry, with an ordinary message.

use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::raw::message;

/// HTTP's status, gRPC's and its text.
pub(crate) type Answer = (u16, Option<String>, Option<String>);

pub(crate) async fn post(path: &Path, uri: &str, headers: &[(&str, &str)]) -> Answer {
    post_named(path, uri, "ada", headers).await
}

pub(crate) async fn post_named(
    path: &Path,
    uri: &str,
    name: &str,
    headers: &[(&str, &str)],
) -> Answer {
    request(path, "POST", uri, name, headers).await.unwrap()
}

/// Sends any request that HTTP/2 can carry, with an ordinary message.
pub(crate) async fn request(
    path: &Path,
    method: &str,
    uri: &str,
    name: &str,
    headers: &[(&str, &str)],
) -> Result<Answer, hyper::Error> {
    let stream = TokioIo::new(tokio::net::UnixStream::connect(path).await.unwrap());
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
    let (mut sender, connection) = handshake.await?;
    let driver = tokio::spawn(connection);
    let uri = http::Uri::builder().scheme("http").authority("localhost").path_and_query(uri);
    let mut request = http::Request::builder().method(method).uri(uri.build().unwrap());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let message = Bytes::from(message(name, 0));
    let response = sender.send_request(request.body(Full::new(message)).unwrap()).await?;
    let (parts, body) = response.into_parts();
    let trailers = body.collect().await?.trailers().cloned().unwrap_or_default();
    let text = |name| {
        let value = parts.headers.get(name).or(trailers.get(name))?;
        Some(value.to_str().unwrap().to_owned())
    };
    let answer = (parts.status.as_u16(), text("grpc-status"), text("grpc-message"));
    driver.abort();
    Ok(answer)
}
