/** A network between the nodes of a cluster that a test can cut. Linux only: it gives each node an address of its own for outgoing connections. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect } from 'vitest'
import type { Admin } from '../../packages/upstash-bridge/test/cluster-admin.ts'

/** The address from which a node connects to others. All of 127.0.0.0/8 is loopback. */
const addressOf = (node: number) => `127.0.1.${node + 1}`

/** Puts a proxy in front of the ports of each node for clients and for other nodes. */
export async function startNetwork({ urls, ask }: Admin) {
  const open = new Set<{ source: string; target: number; sockets: Socket[] }>()
  let isolated: number | undefined

  const isCut = (source: string, target: number) => {
    const from = urls.findIndex((_, node) => addressOf(node) === source)
    return from >= 0 && isolated !== undefined && (from === isolated) !== (target === isolated)
  }

  async function proxy(target: number, port: number) {
    const server = createServer((socket) => {
      const source = socket.remoteAddress ?? ''
      if (isCut(source, target)) return void socket.destroy()
      const other = connect(port, '127.0.0.1')
      const link = { source, target, sockets: [socket, other] }
      open.add(link)
      for (const [one, peer] of [
        [socket, other],
        [other, socket],
      ] as const) {
        one.on('error', () => {})
        one.on('close', () => {
          peer.destroy()
          open.delete(link)
        })
        one.pipe(peer)
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { server, port: (server.address() as AddressInfo).port }
  }

  const proxies = await Promise.all(
    urls.map(async (url, node) => {
      const [, bus] = (await ask(node, 'CONFIG', 'GET', 'cluster-port')) as unknown as string[]
      const clients = await proxy(node, Number(new URL(url).port))
      const nodes = await proxy(node, Number(bus))
      const settings = {
        'bind-source-addr': addressOf(node),
        'cluster-announce-ip': '127.0.0.1',
        'cluster-announce-port': clients.port,
        'cluster-announce-bus-port': nodes.port,
      }
      await ask(node, 'CONFIG', 'SET', ...Object.entries(settings).flat().map(String))
      return { clients, nodes }
    }),
  )
  const nodesBy = async (node: number) => String(await ask(node, 'CLUSTER', 'NODES'))
  const roleOf = async (node: number) => String(await ask(node, 'INFO', 'replication'))
  /** Waits until each node and each replica uses the network. */
  await expect
    .poll(
      async () => {
        const views = await Promise.all(urls.map((_, node) => nodesBy(node)))
        const roles = await Promise.all(urls.map((_, node) => roleOf(node)))
        return (
          roles.every((role) => !role.includes('master_link_status:down')) &&
          views.every((view) =>
            proxies.every(({ clients, nodes }) => view.includes(`:${clients.port}@${nodes.port}`)),
          ) &&
          views.every((view) => !/disconnected|fail/.test(view))
        )
      },
      { timeout: 30_000 },
    )
    .toBe(true)

  return {
    roleOf,
    nodesBy,
    /** Cuts all connections between a node and the others, but not those of clients. */
    isolate(node: number) {
      isolated = node
      for (const { source, target, sockets } of open) {
        if (isCut(source, target)) for (const socket of sockets) socket.destroy()
      }
    },
    heal() {
      isolated = undefined
    },
    close() {
      for (const { clients, nodes } of proxies)
        for (const { server } of [clients, nodes]) server.close()
      for (const { sockets } of open) for (const socket of sockets) socket.destroy()
    },
  }
}
