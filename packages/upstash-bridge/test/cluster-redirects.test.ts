import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { type Bridge, startBridge } from '../src/index.ts'
import { slotOf } from '../src/slot.ts'

/** Redirections that no real cluster sends reliably, by servers that only speak the protocol. */
type Node = { port: number; gets: number; server: Server; answer: () => string }

const nodes: Node[] = []
const sockets = new Set<Socket>()
let bridge: Bridge | undefined
afterEach(async () => {
  await bridge?.close()
  for (const socket of sockets) socket.destroy()
  for (const { server } of nodes.splice(0)) server.close()
})

const SLOT = slotOf('k')
const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`
const array = (...items: string[]) => `*${items.length}\r\n${items.join('')}`
/** COMMAND of a server that knows only GET, whose key is its first argument. */
const at = array(bulk('index'), ':1\r\n')
const begin = array(bulk('type'), bulk('index'), bulk('spec'), at)
const specification = array(bulk('begin_search'), begin)
const none = array()
const COMMAND = array(
  array(
    bulk('get'),
    ':2\r\n',
    none,
    ':1\r\n',
    ':1\r\n',
    ':1\r\n',
    none,
    none,
    array(specification),
    none,
  ),
)

async function startFake(slots: () => string): Promise<Node> {
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const [, name] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        const word = name!.toUpperCase()
        if (word === 'GET') node.gets++
        socket.write(
          word === 'GET'
            ? node.answer()
            : word === 'CLUSTER'
              ? slots()
              : word === 'COMMAND'
                ? COMMAND
                : word === 'FUNCTION'
                  ? none
                  : word === 'ASKING' || word === 'PING'
                    ? '+OK\r\n'
                    : bulk('redis_version:7.0.15'),
        )
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const node: Node = { port, gets: 0, server, answer: () => bulk('value') }
  nodes.push(node)
  return node
}

/** Two nodes. The first one owns all slots, according to both. */
async function startTwo(host: string | (() => string) = '127.0.0.1') {
  const slots = () => {
    const name = typeof host === 'string' ? host : host()
    return array(
      array(':0\r\n', ':16383\r\n', array(bulk(name), `:${nodes[0]!.port}\r\n`, bulk('id'))),
    )
  }
  const [one, other] = [await startFake(slots), await startFake(slots)]
  return { one, other }
}

async function get() {
  const headers = { authorization: 'Bearer dev' }
  const response = await fetch(`${bridge!.url}/get/k`, { headers })
  return { status: response.status, json: await response.json() }
}

test.each(['MOVED', 'ASK'])(
  'Two nodes that send a command to each other with %s and MOVED get few attempts, until the deadline.',
  async (word) => {
    const { one, other } = await startTwo()
    one.answer = () => `-${word} ${SLOT} 127.0.0.1:${other.port}\r\n`
    other.answer = () => `-MOVED ${SLOT} 127.0.0.1:${one.port}\r\n`
    bridge = await startBridge({ cluster: [`redis://127.0.0.1:${one.port}`], timeout: 1000 })
    const { status, json } = await get()
    expect([status, json]).toEqual([503, { error: expect.stringContaining(`ERR `) }])
    // An attempt each 25 ms, and the ones that need no pause.
    expect(one.gets + other.gets).toBeLessThan(100)
  },
)

test.each(['', '?'])(
  'A redirection to the host "%s" leads to the host that has sent it.',
  async (host) => {
    const { one, other } = await startTwo(host)
    one.answer = () => `-MOVED ${SLOT} ${host}:${other.port}\r\n`
    bridge = await startBridge({ cluster: [`redis://127.0.0.1:${one.port}`] })
    expect(await get()).toEqual({ status: 200, json: { result: 'value' } })
  },
)

test('A node with an invalid address does not stop the bridge.', async () => {
  let [host, reads] = ['127.0.0.1', 0]
  const { one } = await startTwo(() => {
    reads++
    return host
  })
  bridge = await startBridge({ cluster: [`redis://127.0.0.1:${one.port}`], timeout: 500 })
  host = 'in valid'
  one.answer = () => `-MOVED ${SLOT} in/valid:1\r\n`
  expect((await get()).status).toBeGreaterThanOrEqual(500)
  const before = reads
  await vi.waitFor(() => expect(reads).toBeGreaterThan(before), { timeout: 30_000 })
  one.answer = () => bulk('value')
  host = '127.0.0.1'
  await vi.waitFor(async () => expect((await get()).status).toBe(200), { timeout: 30_000 })
  expect(await get()).toEqual({ status: 200, json: { result: 'value' } })
})
