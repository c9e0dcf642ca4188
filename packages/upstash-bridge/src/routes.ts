import { ErrorReply } from 'redis'
import type { Command, Reply } from './connection.ts'

/** Where the first key of a command is: at an index; after a keyword; or at `first` if the number at `count` is not 0. */
type KeyRule = number | { keyword: string; from: number } | { count: number; first: number }

/** How to combine the replies of all masters to one. */
export type Combine = (replies: Reply[]) => Reply

/** Which node of a cluster runs a command: the owner of its first key; each master; or any. */
export type Route = { key?: KeyRule; all?: Combine; isContainer: boolean }

/** The routes by command, or by `command|subcommand`. */
export type Routes = Map<string, Route>

/** Reads the reply to COMMAND of Redis 7.0 and later: key specifications, and tips for clients of a cluster. */
export function readRoutes(reply: Reply, routes: Routes = new Map()): Routes {
  for (const entry of list(reply)) {
    const [name, , , , , , , tips, specifications, subcommands] = list(entry)
    const isContainer = list(subcommands).length > 0
    const key = ruleOf(list(specifications)[0] ?? null)
    const all = combineOf(String(name).toLowerCase(), list(tips).map(String))
    routes.set(String(name).toLowerCase(), {
      isContainer,
      ...(key && { key }),
      ...(all && { all }),
    })
    readRoutes(subcommands ?? null, routes)
  }
  return routes
}

const ANY: Route = { isContainer: false }

export function routeOf(routes: Routes, command: Command): Route {
  const name = String(command[0])
  const route = routes.get(name) ?? routes.get(name.toLowerCase()) ?? ANY
  if (!route.isContainer) return route
  return routes.get(`${name}|${command[1]}`.toLowerCase()) ?? ANY
}

/** @returns `undefined` for a command without keys */
export function firstKey({ key }: Route, command: Command): string | Buffer | undefined {
  if (key === undefined) return
  if (typeof key === 'number') return command[key]
  if ('count' in key) return Number(command[key.count]) > 0 ? command[key.first] : undefined
  const at = command.findIndex(
    (argument, index) => index >= key.from && String(argument).toUpperCase() === key.keyword,
  )
  return at < 0 ? undefined : command[at + 1]
}

function ruleOf(specification: Reply): KeyRule | undefined {
  const begin = map(map(specification).get('begin_search'))
  const find = map(map(specification).get('find_keys'))
  const at = map(begin.get('spec'))
  if (String(begin.get('type')) === 'keyword') {
    return { keyword: String(at.get('keyword')), from: Number(at.get('startfrom')) }
  }
  if (String(begin.get('type')) !== 'index') return
  const index = Number(at.get('index'))
  if (String(find.get('type')) !== 'keynum') return index
  const counted = map(find.get('spec'))
  return {
    count: index + Number(counted.get('keynumidx')),
    first: index + Number(counted.get('firstkey')),
  }
}

/** Sources: the tips `request_policy` and `response_policy` of COMMAND. They do not describe how to combine KEYS and RANDOMKEY. */
function combineOf(name: string, tips: string[]): Combine | undefined {
  if (!tips.some((tip) => /^request_policy:all_(shards|nodes)$/i.test(tip))) return
  if (name === 'keys') return (replies) => firstError(replies) ?? replies.flatMap(list)
  if (name === 'randomkey') return (replies) => replies.find((reply) => reply !== null) ?? null
  const policy = tips.find((tip) => /^response_policy:/i.test(tip))?.slice(16)
  const numbers = (replies: Reply[], sum: (one: number, other: number) => number): Reply => {
    const total = replies.map(Number).reduce(sum)
    return typeof replies[0] === 'number' ? total : `${total}`
  }
  switch (policy) {
    case 'agg_sum':
      return (replies) => firstError(replies) ?? numbers(replies, (one, other) => one + other)
    case 'agg_logical_and': // an array for each node, such as that of SCRIPT EXISTS
      return (replies) =>
        firstError(replies) ??
        list(replies[0]).map((_, index) =>
          numbers(
            replies.map((reply) => list(reply)[index] ?? null),
            (one, other) => Math.min(one, other),
          ),
        )
    case 'one_succeeded':
      return (replies) => replies.find((reply) => !(reply instanceof ErrorReply)) ?? replies[0]!
    case 'all_succeeded':
      return name === 'ping' ? undefined : (replies) => firstError(replies) ?? replies[0]!
    default:
      return undefined // such as INFO, which any node answers
  }
}

function firstError(replies: Reply[]): ErrorReply | undefined {
  return replies.find((reply) => reply instanceof ErrorReply)
}

function list(reply: Reply | undefined): Reply[] {
  return Array.isArray(reply) ? reply : []
}

/** A RESP2 map: alternating names and values. */
function map(reply: Reply | undefined): Map<string, Reply> {
  const all = list(reply)
  const pairs = all.flatMap((name, index): [string, Reply][] =>
    index % 2 === 0 ? [[String(name), all[index + 1] ?? null]] : [],
  )
  return new Map(pairs)
}
