/** Spellings of paths, and a judge of whether an origin routes one of them otherwise than Sluice reads it. */
import { Agent, request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { Matched } from '../../src/core/program/match.ts'
import { folded } from '../../src/core/request/fold.ts'
import { RequestView } from '../../src/core/request/view.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { type NodeRequest, toRequest } from '../../src/hosts/node/incoming.ts'
import { matcherOf } from './create-matcher.ts'

/**
 * The routes of each origin: `/login`, `/users/:id`, `/admin/*`, `/health` and `/free`. An origin answers with the name of the route, and
 * with the id in another line. Any other answer is no route.
 */
export type Route = { name: string; id?: string | undefined } | undefined

const paths = ['/login', '/users/8', '/admin/x', '/health', '/free']

const MARKS = [
  ...['/', '//', '%2f', '%2F', '\\', '%5c', '%5C%2f', '.', './', '../', '%2e/', '%2E%2e/'],
  ...['/.', '/..', '/%2e%2e', '/.%2e', '..;/', '/..;x', '..%2f', '/..%5c', '\\..\\', '%2e%2e%2f'],
  ...['/x/..', '/x/%2e%2e', '/x%2f..', '/x;y/..', '//a', '/./', '/x\\..', '/x//..', '/x/..%2f'],
  ...[
    ';',
    ';x',
    ';x=1',
    '%3b',
    '%3Bx',
    ',',
    '%0a',
    '%0A',
    '%0d',
    '%0d%0a',
    '%0a%0a',
    '%0a/',
    '/%0a',
  ],
  ...[
    '%20',
    '+',
    '%09',
    '%0b',
    '%0c',
    '%00',
    '%c2%a0',
    '%c2%85',
    '%e2%80%a8',
    '%e3%80%80',
    '%ef%bb%bf',
  ],
  ...[
    '?',
    '?x=/',
    '??',
    '%3f',
    '%23',
    '%',
    '%25',
    '%zz',
    '%ff',
    '%c0%af',
    '%u002f',
    '~',
    ':',
    '*',
    '.json',
  ],
]

/** Numbers that depend on nothing else, so that each run tries the same spellings. */
function* numbers() {
  for (let state = 1; ; state = (state * 48_271) % 2_147_483_647) yield state
}

const inserted = (path: string, mark: string, place: number) =>
  path.slice(0, place) + mark + path.slice(place)

/** The places beside a slash, and the end. */
const edges = (path: string) =>
  [...path, '/'].flatMap((one, place) => (one === '/' || path[place - 1] === '/' ? [place] : []))

/** Targets with a mark at an edge, perhaps a second one at any place, and with encoded letters and other letter case. */
export function spellings(count: number): string[] {
  const ones = paths.flatMap((path) =>
    MARKS.flatMap((mark) => edges(path).map((place) => inserted(path, mark, place))),
  )
  const encoded = paths.flatMap((path) => [
    path.toUpperCase(),
    path.replace(/[a-z\d]/, (one) => `%${one.charCodeAt(0).toString(16)}`),
    path.replace(/[a-z\d]/, (one) => `%25${one.charCodeAt(0).toString(16)}`),
  ])
  const all = new Set([...paths, ...encoded])
  const random = numbers()
  const below = (most: number) => random.next().value! % most
  while (all.size < count) {
    const one = ones[below(ones.length)]!
    const isPair = below(2) === 1
    const target = isPair ? inserted(one, MARKS[below(MARKS.length)]!, below(one.length + 1)) : one
    if (target.startsWith('/')) all.add(target)
  }
  return [...all]
}

const terms = { limit: 5, window: '1h' } as const
const config = parseConfig(
  {
    policies: [
      { name: 'login', ...terms, match: { path: '/login' } },
      { name: 'users', ...terms, match: { path: '/users/:id' }, key: 'path:id' },
      { name: 'not-free', ...terms, match: { not: { path: '/free' } }, key: 'global' },
      { name: 'rest', ...terms, key: 'global' },
    ],
    deny: { path: '/admin/*' },
    allow: { path: '/health', policies: 'rest' },
  },
  defaultFields,
)
const match = matcherOf(config)
const runtime = { env: {}, context: undefined, waitUntil: () => {} }
const decided = (request: Request) =>
  match(new RequestView(request, runtime, config, () => undefined))

/** A way from the client to an origin: what the origin gets of a target, and how Sluice decides it. `undefined` if it is refused. */
export type Way = (
  target: string,
) => { sent: string; decide: () => Matched | Promise<Matched> } | undefined

const HOST = 'a.example'

/** A limiter in a server of Node, and forward-auth: the origin gets the target as it was sent. */
export const asSent: Way = (target) => {
  const incoming: NodeRequest = {
    url: target,
    headers: { host: HOST },
    rawHeaders: ['Host', HOST],
    socket: {},
  }
  const request = toRequest(incoming)
  return 'status' in request ? undefined : { sent: target, decide: () => decided(request) }
}

/** The gateway: the origin gets the URL that policies have read. */
export const asParsed: Way = (target) => {
  const request = new Request(`http://${HOST}${target}`)
  return { sent: request.url.slice(`http://${HOST}`.length), decide: () => decided(request) }
}

/** A limiter in an app on Workers, whose router reads the URL as it was sent. The constructor of `Request` would parse it. */
export const onWorkers: Way = (target) => {
  const url = `http://${HOST}${target}`
  const request = { url, method: 'GET', headers: new Headers() } as Request
  return { sent: url, decide: () => decided(request) }
}

/** Bytes that are not UTF-8 arrive as U+FFFD in the answer of an origin. */
const readable = (id: string) => id.replace(/(%[89a-f][\da-f]|\ufffd)+/gi, '\ufffd')

function decodedRun(run: string): string {
  try {
    return decodeURIComponent(run)
  } catch {
    return run
  }
}

/** Says what is wrong with the decision on a request that an origin has routed, or returns `undefined`. */
function wrongWith({ denied, policies }: Matched, route: NonNullable<Route>): string | undefined {
  if (denied) return undefined
  const applied = policies
  const applies = (name: string) => applied.some(({ terms }) => terms.name === name)
  if (route.name === 'admin') return 'deny does not apply'
  if (route.name === 'login' && !applies('login')) return 'login does not apply'
  if (!applies('rest') && route.name !== 'health') return 'allow applies'
  if (!applies('not-free') && route.name !== 'free') return 'not applies'
  if (route.name !== 'users') return undefined
  // Some routers do not decode an id.
  const decoded = route.id!.replace(/%[0-7][\da-f]|(?:%[89a-f][\da-f])+/gi, decodedRun)
  const wanted = [route.id!, decoded].map((id) =>
    readable(folded(id.replace(/[/\\]/g, encodeURIComponent))),
  )
  const ids = applied
    .filter(({ terms }) => terms.name === 'users')
    .map(({ partitionKey }) => partitionKey[0]![1])
  const isCharged = ids.some((one) => one === undefined || wanted.includes(readable(one)))
  return isCharged ? undefined : `the id ${decoded} is not charged, but ${ids}`
}

/** Sends targets to an origin. Returns how many of them it has routed, and those that Sluice reads otherwise. */
export async function compare(
  targets: string[],
  way: Way,
  ask: (sent: string) => Promise<Route>,
): Promise<{ routed: Record<string, number>; wrong: string[] }> {
  const routed: Record<string, number> = {}
  const wrong: string[] = []
  const queue = targets.values()
  const work = async () => {
    for (const target of queue) {
      const taken = way(target)
      const route = taken && (await ask(taken.sent))
      if (!route) continue
      routed[route.name] = (routed[route.name] ?? 0) + 1
      const problem = wrongWith(await taken.decide(), route)
      if (problem) wrong.push(`${target} as ${taken.sent}: ${route.name}, but ${problem}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  return { routed, wrong }
}

/** A client that sends each target unchanged, and once. A target that cannot be sent or is not answered has no route. */
export function client(url: string): { ask: (sent: string) => Promise<Route>; close: () => void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const { hostname: host, port } = new URL(url)
  const send = (path: string) =>
    new Promise<Route>((resolve) => {
      const asked = httpRequest(
        { host, port, path, agent, headers: { Host: HOST } },
        async (response) => {
          const answer = await text(response).catch(() => '')
          resolve(response.statusCode === 200 ? routeOf(answer) : undefined)
        },
      )
      asked.on('error', () => resolve(undefined))
      asked.end()
    })
  const routes = new Map<string, Promise<Route>>()
  const ask = (path: string) => {
    const route = routes.get(path) ?? send(path)
    routes.set(path, route)
    return route
  }
  return { ask, close: () => agent.destroy() }
}

export function routeOf(answer: string): Route {
  const [, name, id] = /^(login|users|admin|health|free)(?:\n([\s\S]*))?$/.exec(answer) ?? []
  return name ? { name, id } : undefined
}
