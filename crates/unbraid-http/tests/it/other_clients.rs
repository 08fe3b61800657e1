//! Responses that another client received.

use bytes::Bytes;
use futures::TryStreamExt;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::{io::AsyncWriteExt, net::TcpStream};
use unbraid::Completions;
use unbraid_http::{HttpError, ResponseExt};

use crate::{
    responses::texts,
    server::{Server, full, own_client, read_request, two_choices, two_choices_reply},
};

#[tokio::test]
async fn a_response_of_reqwest_is_read() {
    let server = Server::start(|request| match request {
        0 => two_choices_reply(),
        _ => full(
            429,
            "application/json",
            r#"{"error":{"message":"slow down"}}"#,
        ),
    })
    .await;
    let own = own_client();
    let send = || own.post(server.base_url()).body("{}").send();

    let config = Completions::builder().expect_choices(2);
    let completions = send().await.unwrap().into_completions_with(config).await;
    assert_eq!(texts(&completions.unwrap()).await, ["one", "two"]);

    let error = send().await.unwrap().into_completions().await.unwrap_err();
    let HttpError::Status(status) = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (status.status(), status.message()),
        (429, Some("slow down"))
    );
}

#[tokio::test]
async fn a_body_of_hyper_is_read() {
    let server = Server::start(|_| two_choices_reply()).await;
    let socket = TcpStream::connect(server.address()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::post("/v1/chat/completions")
        .header("host", server.address().to_string())
        .body(Full::<Bytes>::default())
        .unwrap();
    let body = sender.send_request(request).await.unwrap().into_body();
    let completions = Completions::from_byte_stream(body.into_data_stream());
    assert_eq!(texts(&completions).await, ["one", "two"]);
}

#[tokio::test]
async fn an_async_reader_is_read() {
    let server = Server::raw(|mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(two_choices().as_bytes()).await.unwrap();
    })
    .await;
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    socket.write_all(b"GET /\r\n\r\n").await.unwrap();
    assert_eq!(
        texts(&Completions::from_reader(socket)).await,
        ["one", "two"]
    );
}

#[tokio::test]
async fn errors_and_futures_are_send_and_sync() {
    fn check_error<T: Clone + Send + Sync + std::error::Error + 'static>() {}
    fn check_value<T: Clone + Send + Sync + std::fmt::Debug + 'static>() {}
    check_value::<unbraid_http::Client>();
    check_value::<unbraid_http::ClientBuilder>();
    check_value::<unbraid_http::Request>();
    fn check_send<T: Send>(value: T) -> T {
        value
    }
    check_error::<HttpError>();
    check_error::<unbraid_http::BuildError>();
    check_error::<unbraid_http::RequestError>();
    check_error::<unbraid_http::StatusError>();
    let server = Server::start(|_| two_choices_reply()).await;
    let (client, request) = (server.client(), crate::responses::request());
    let completions = check_send(client.send(&request)).await.unwrap();
    assert_eq!(texts(&completions).await, ["one", "two"]);
    let own = own_client();
    let response = own.get(server.base_url()).send().await.unwrap();
    let body = check_send(response.into_completions()).await.unwrap();
    assert_eq!(texts(&body).await, ["one", "two"]);
    let stream = own.get(server.base_url()).send().await.unwrap();
    let stream = stream.bytes_stream().map_ok(|bytes| bytes.to_vec());
    assert_eq!(
        texts(&Completions::from_byte_stream(stream)).await,
        ["one", "two"]
    );
}
