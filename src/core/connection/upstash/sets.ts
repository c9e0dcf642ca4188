/** Finds the compiled script for a call: the sets of limits that apply together, as the calls of an isolate show them. */
import { hasOwnKey } from '../../base/units.ts'
import type { Limit, StoreRequest, Terms } from '../store.ts'
import { algorithmNames, check, checkCall, isWhole, optionOf, termsText } from './arguments.ts'
import { type CompiledLimit, compile } from './compile.ts'
import { recordOf, type ScriptCall } from './script.ts'
import { lua } from './script-text.ts'

/** The most sets of an isolate. Calls of further sets go to the general script. */
const MAX_SETS = 64
/** The most limits of a set: Lua has 32 captures for their states. */
const MAX_LIMITS = 7
/** The request that makes a set, for errors. */
const PLACE = 'request 1'
/** After so many declined calls, the calls of a set go to the general script. */
const MAX_DECLINES = 3

export interface Script {
  text: string
  sha: string | undefined
  /** True if the database has run it for this isolate. */
  isLoaded: boolean
}

export const newScript = (text: string): Script => ({ text, sha: undefined, isLoaded: false })

/** Limits that apply together on one key, in this order. */
interface LimitSet {
  limits: CompiledLimit[]
  /** For one key or for many, with or without costs. */
  scripts: (Script | undefined)[]
  declines: number
}

export interface CompiledCall extends ScriptCall {
  script: Script
  set: LimitSet
}

/** The sets that begin with the same limits. New live policies have new terms, most of them with the same content. */
interface Node {
  set?: LimitSet
  next: WeakMap<Terms, Node>
  byContent: Map<string, Node>
}

const newNode = (): Node => ({ next: new WeakMap(), byContent: new Map() })

/**
 * Returns a function that makes the call of a compiled script, or returns `undefined` if the general script must decide: for other modes
 * than `take`, and for requests with a ticket, a penalty, a floor, an override, a limit with its own key, or several keys.
 */
export function compiledCalls(): (
  requests: StoreRequest[],
  now?: number,
  namespace?: string,
) => CompiledCall | undefined {
  const root = newNode()
  let sets = 0

  /** Makes the set of limits that apply together for the first time. */
  function newSet(request: StoreRequest): LimitSet | undefined {
    const { limits } = request
    if (!isPlain(request)) return undefined
    let node = root
    const tags = new Set<string>()
    for (const { terms } of limits) {
      const content = termsText(terms, PLACE).whole! // throws if they are invalid
      let next = node.byContent.get(content)
      if (!next && sets === MAX_SETS) return undefined
      next ??= newNode()
      node.byContent.set(content, next)
      node.next.set(terms, next)
      node = next
      tags.add(terms.tag)
    }
    if (!node.set) {
      if (sets === MAX_SETS) return undefined
      check(tags.size === limits.length, PLACE, 'tag (repeated)')
      sets += 1
      node.set = { limits: limits.map(toCompiled), scripts: [], declines: 0 }
    }
    return node.set
  }

  return (requests, now, namespace) => {
    const first = requests[0]
    if (!first) return undefined
    let node: Node | undefined = root
    for (const { terms } of first.limits) node = node?.next.get(terms)
    const set = node?.set ?? newSet(first)
    if (!set || set.declines >= MAX_DECLINES) return undefined
    const keys: string[] = []
    let sendsCosts = false
    for (const request of requests) {
      if (!isOf(set.limits, first.limits, request)) return undefined
      keys.push(recordOf(request.limits[0]!.subject, namespace))
      for (const { cost } of request.limits) sendsCosts ||= cost !== 1
    }
    const isMany = keys.length > 1
    if (isMany && new Set(keys).size < keys.length) return undefined
    if (isMany || now !== undefined) checkCall(requests.length, keys.length, now)
    const args: string[] = []
    for (const { limits } of requests) {
      for (let index = 0; index < limits.length; index += 1) {
        const limit = limits[index]!
        if (sendsCosts) args.push(`${limit.cost}`)
        if (set.limits[index]!.option === undefined)
          args.push(`${optionOf(limit.terms, limit, 'take', 'request')}`)
      }
    }
    if (args.length > 0 || now !== undefined) args.unshift(`${now ?? ''}`)
    const form = isMany ? 'many' : 'one'
    const index = (isMany ? 2 : 0) + (sendsCosts ? 1 : 0)
    set.scripts[index] ??= newScript(compile(lua, set.limits, form, sendsCosts))
    return { script: set.scripts[index], keys, args, set }
  }
}

export function isPlain(request: StoreRequest): boolean {
  const { limits } = request
  if (limits.length === 0 || limits.length > MAX_LIMITS) return false
  for (const { terms } of limits) if (hasOwnKey(terms.algorithm) || terms.isOwn) return false
  return isOf(limits.map(toCompiled), limits, request)
}

/** True if a compiled script of these limits can decide the request. The first request has its terms. */
function isOf(compiled: CompiledLimit[], first: Limit[], request: StoreRequest): boolean {
  const { mode, limits } = request
  if (mode !== 'take' || request.ticket || limits.length !== first.length) return false
  for (let index = 0; index < limits.length; index += 1) {
    const limit = limits[index]!
    const { cost, floor, penalty, override } = limit
    if (limit.terms !== first[index]!.terms || limit.subject !== limits[0]!.subject) return false
    if (floor || penalty || override || (cost !== 1 && !isWhole(cost, 1))) return false
    if (hasPeriod(limit) !== (compiled[index]!.option === undefined)) return false
  }
  return true
}

/** Calendar periods change, so they are arguments. */
const hasPeriod = ({ terms, period }: Limit) =>
  period !== undefined && terms.algorithm === 'fixed-window'

export function toCompiled(row: Limit): CompiledLimit {
  const { terms } = row
  const { tag, algorithm, limit, windowMs } = terms
  return {
    tag,
    algorithm: algorithmNames[algorithm] as CompiledLimit['algorithm'],
    limit,
    window: windowMs,
    option: hasPeriod(row) ? undefined : optionOf(terms, {}, 'take', 'request'),
  }
}
