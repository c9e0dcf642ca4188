import { connect } from 'node:net'

/** Sends bytes unchanged, which fetch would normalize, and reads until the server closes the connection. */
export async function raw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setTimeout(10_000, () => socket.destroy())
  socket.end(bytes, 'latin1')
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
