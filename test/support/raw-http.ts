import { connect } from 'node:net'

/**
 * Sends bytes unchanged, which fetch would normalize, and reads until the server closes the connection.
 * @param halfClose closes the sending side. A Node server regards such a client as gone. Defaults to true
 */
export async function raw(url: string, bytes: string, halfClose = true): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setTimeout(10_000, () => socket.destroy())
  socket.write(bytes, 'latin1')
  if (halfClose) socket.end()
  let text = ''
  try {
    for await (const chunk of socket) text += chunk
  } catch {
    // A reset after the answer counts as a close.
  }
  return text
}

/** A request with these header lines that closes its connection. */
export const request = (target: string, ...lines: string[]) =>
  [`GET ${target} HTTP/1.1`, ...lines, 'Connection: close', '', ''].join('\r\n')
