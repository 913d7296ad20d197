//! Keys of the parties in the hands of the storm: it can be a data user, a provider, or a stranger,
//! and say whatever it likes inside of TLS.

use crate::gullible::Gullible;
use crate::tally::Trouble;
use heda_node::wire::frame::{Frame, FrameKind, Head};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ServerConfig};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

const PROTOCOL: &[u8] = b"heda";

fn keys(
    identity: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Trouble> {
    let chain = CertificateDer::pem_file_iter(identity.join("certificate.pem"))?;
    let chain = chain.collect::<Result<Vec<_>, _>>()?;
    Ok((
        chain,
        PrivateKeyDer::from_pem_file(identity.join("key.pem"))?,
    ))
}

/// Connects with the key of a folder.
pub(crate) fn connector(identity: &Path) -> Result<TlsConnector, Trouble> {
    let (chain, key) = keys(identity)?;
    let provider = Arc::new(heda_node::identity::key_exchange::provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible))
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Answers with the key of a folder, whoever calls.
pub(crate) fn acceptor(identity: &Path) -> Result<TlsAcceptor, Trouble> {
    let (chain, key) = keys(identity)?;
    let provider = Arc::new(heda_node::identity::key_exchange::provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A connection from one of the addresses of this machine.
pub(crate) async fn connect_from(last: u8, port: u16) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, last], 0).into())?;
    socket.connect(([127, 0, 0, 1], port).into()).await
}

/// A connection inside of TLS.
pub(crate) async fn secured(
    connector: &TlsConnector,
    last: u8,
    port: u16,
) -> std::io::Result<TlsStream<TcpStream>> {
    let tcp = connect_from(last, port).await?;
    let name = ServerName::try_from("provider").map_err(std::io::Error::other)?;
    connector.connect(name, tcp).await
}

/// The next frame as it is; nothing at the end.
pub(crate) async fn read_frame<R>(from: &mut R) -> std::io::Result<Option<(FrameKind, Vec<u8>)>>
where
    R: AsyncRead + Unpin,
{
    let mut head = [0; 5];
    match from.read_exact(&mut head).await {
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    };
    let head = Head::from_bytes(head).map_err(std::io::Error::other)?;
    let mut payload = vec![0; head.length];
    from.read_exact(&mut payload).await?;
    Ok(Some((head.kind, payload)))
}

/// A frame with any payload, also one that is not allowed.
pub(crate) fn raw_frame(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
    let kind = match kind {
        FrameKind::Greeting => 1,
        FrameKind::Piece => 2,
        FrameKind::LastPiece => 3,
        FrameKind::Stop => 4,
        FrameKind::Alive => 5,
    };
    [&[kind], &(payload.len() as u32).to_le_bytes()[..], payload].concat()
}

/// A session as the data user, after the greetings.
pub(crate) async fn session(
    connector: &TlsConnector,
    port: u16,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut stream = secured(connector, 1, port).await?;
    stream.write_all(Frame::greeting().as_bytes()).await?;
    match read_frame(&mut stream).await? {
        Some((FrameKind::Greeting, _)) => Ok(stream),
        other => Err(std::io::Error::other(format!("no session: {other:?}"))),
    }
}
