/** Finds the compiled script for a call: the sets of limits that apply together, as the calls of an isolate show them. */
import { hasOwnKey } from '../../base/own-key.ts'
import type { Limit, StoreRequest, Terms } from '../store.ts'
import { algorithmNames, checkCall, isWhole, optionOf } from './arguments.ts'
import { type CompiledLimit, compile, type Form } from './compile.ts'
import { encode, recordOf, type ScriptCall } from './script.ts'
import { lua } from './script-text.ts'

/** The most sets of an isolate. Calls of further sets go to the general script. */
const MAX_SETS = 64
/** The most limits of a set: Lua has 32 captures for their states. */
const MAX_LIMITS = 7
/** After so many declined calls, the calls of a set go to the general script. */
const MAX_DECLINES = 3

/** A text that Redis runs. */
export interface Script {
  text: string
  /** `undefined` until it is computed. */
  sha: string | undefined
}

export interface CompiledCall extends ScriptCall {
  script: Script
  /** To be called if the script has declined the call. */
  declined(): void
}

/** Limits that apply together on one key, in this order. */
interface LimitSet {
  limits: CompiledLimit[]
  /** For one key or for many, with or without costs. */
  scripts: (Script | undefined)[]
  declines: number
}

/** The sets that begin with the same limits. New live policies have new terms, most of them with the same content. */
interface Node {
  set?: LimitSet
  next: WeakMap<Terms, Node>
  byContent: Map<string, Node>
}

const newNode = (): Node => ({ next: new WeakMap(), byContent: new Map() })
const contentOf = ({ tag, algorithm, limit, windowMs, burst, align }: Terms) =>
  JSON.stringify([tag, algorithm, limit, windowMs, burst, align])

/**
 * Returns a function that makes the call of a compiled script, or returns `undefined` if the general script must decide: for other modes
 * than `take`, and for requests with a penalty, a floor, an override, a limit with its own key, or several keys.
 */
export function compiledCalls(): (
  requests: StoreRequest[],
  now?: number,
  namespace?: string,
) => CompiledCall | undefined {
  const root = newNode()
  let sets = 0

  function nodeOf(limits: Limit[]): Node | undefined {
    let node = root
    for (const { terms } of limits) {
      let next = node.next.get(terms)
      if (!next) {
        const content = contentOf(terms)
        next = node.byContent.get(content)
        if (!next && sets === MAX_SETS) return undefined
        next ??= newNode()
        node.byContent.set(content, next)
        node.next.set(terms, next)
      }
      node = next
    }
    return node
  }

  return (requests, now, namespace) => {
    for (const request of requests) if (!isPlain(request)) return undefined
    const limits = requests[0]?.limits
    if (!limits) return undefined
    const node = nodeOf(limits)
    if (!node) return undefined
    if (!node.set) {
      if (sets === MAX_SETS) return undefined
      encode(requests, now) // throws if a value is invalid
      sets += 1
      node.set = { limits: limits.map(toCompiled), scripts: [], declines: 0 }
    }
    const { set } = node
    if (set.declines >= MAX_DECLINES) return undefined
    const keys: string[] = []
    let sendsCosts = false
    for (const request of requests) {
      if (!isOf(set, limits, request.limits)) return undefined
      keys.push(recordOf(request.limits[0]!.subject, namespace))
      for (const { cost } of request.limits) sendsCosts ||= cost !== 1
    }
    const isMany = keys.length > 1
    if (isMany && new Set(keys).size < keys.length) return undefined
    checkCall(requests.length, keys.length, now)
    const args = [now === undefined ? '' : `${now}`]
    for (const request of requests) {
      for (const limit of request.limits) {
        if (sendsCosts) args.push(`${limit.cost}`)
        if (hasPeriod(limit)) args.push(`${optionOf(limit.terms, limit, 'take', 'request')}`)
      }
    }
    if (args.length === 1 && now === undefined) args.pop()
    return {
      script: scriptOf(set, isMany ? 'many' : 'one', sendsCosts),
      keys,
      args,
      declined() {
        set.declines += 1
      },
    }
  }
}

/** True if a compiled script can decide the request. */
export function isPlain({ mode, limits }: StoreRequest): boolean {
  if (mode !== 'take' || limits.length === 0 || limits.length > MAX_LIMITS) return false
  const { subject } = limits[0]!
  for (const limit of limits) {
    const isPlain =
      limit.subject === subject &&
      !hasOwnKey(limit.terms.algorithm) &&
      !limit.terms.isOwn &&
      !(limit.floor || limit.penalty || limit.override) &&
      isWhole(limit.cost, 1)
    if (!isPlain) return false
  }
  return true
}

/** @param first the limits of the first request, which are known to be of the set, except for their periods */
function isOf({ limits }: LimitSet, first: Limit[], some: Limit[]): boolean {
  if (some.length !== first.length) return false
  for (let index = 0; index < some.length; index += 1) {
    const limit = some[index]!
    if (limit.terms !== first[index]!.terms) return false
    if (hasPeriod(limit) !== (limits[index]!.option === undefined)) return false
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

/** Assembles a script of a set when it is first used. */
function scriptOf({ limits, scripts }: LimitSet, form: Form, sendsCosts: boolean): Script {
  const index = (form === 'many' ? 2 : 0) + (sendsCosts ? 1 : 0)
  scripts[index] ??= { text: compile(lua, limits, form, sendsCosts), sha: undefined }
  return scripts[index]
}
