import { type AddressInfo, createServer } from 'node:net'

/** A TCP port of loopback that nobody listens on now. Somebody else may take it before you do. */
export async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}
