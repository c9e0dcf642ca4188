/**
 * Prints what one allowed request of the middleware enters, as JSON: the functions of `src`, in the order in which it enters them. A process
 * of its own: a load hook writes a call into each function of `src`.
 */
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { parseAst } from 'rolldown/parseAst'

/** A function in the order of the request. */
export interface Step {
  /** Relative to `src`. */
  file: string
  name: string
}

const steps: Step[] = []
let isWalking = false
const entered = (file: string, name: string) => {
  if (isWalking) steps.push({ file, name })
}
Object.assign(globalThis, { entered })

interface Node {
  type: string
  start: number
  end: number
  body?: Node
  expression?: boolean
  id?: { name: string } | null
  key?: { name: string }
  value?: Node
  init?: Node
}

/** Writes a call into each function of a file. */
function traced(source: string, file: string): string {
  const edits: [at: number, text: string][] = []
  const visit = (node: unknown, name: string) => {
    if (Array.isArray(node)) for (const one of node) visit(one, name)
    if (!(node instanceof Object) || !('type' in node)) return
    const { type, body, expression, id, key } = node as Node
    let own = id?.name ?? key?.name ?? name
    if (/Function/.test(type) && body) {
      const call = `entered(${JSON.stringify(file)}, ${JSON.stringify(own)})`
      if (expression) edits.push([body.start, `(${call}, `], [body.end, ')'])
      else edits.push([body.start + 1, `${call};`])
      own = ''
    }
    for (const value of Object.values(node)) if (value instanceof Object) visit(value, own)
  }
  visit(parseAst(source), '')
  let text = source
  for (const [at, added] of edits.sort(([one], [other]) => other - one))
    text = text.slice(0, at) + added + text.slice(at)
  return text
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const [, file] = /^file:.*?\/src\/(.*\.ts)$/.exec(url) ?? []
    if (!file || url.includes('node_modules')) return loaded
    const source = stripTypeScriptTypes(String(loaded.source))
    return { format: 'module', shortCircuit: true, source: traced(source, file) }
  },
})

const { Hono } = await import('hono')
const { rateLimiter } = await import('../../src/index.ts')

// The time moves between requests only, so that a slow machine enters the same functions.
let now = Date.now()
Date.now = () => now
globalThis.fetch = async () => {
  const start = now - (now % 60_000)
  return Response.json({ result: `${now} +${start}:${start + 120_000 - now + (now - start)}:5:1;` })
}
const app = new Hono()
app.use(
  rateLimiter({
    clientAddress: 'socket',
    denialCache: false,
    policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
  }),
)
app.get('/', (c) => c.text('passed'))
const env = {
  UPSTASH_REDIS_REST_URL: 'http://redis.example',
  UPSTASH_REDIS_REST_TOKEN: 'a-token',
  SLUICE_SECRET: 'a-secret',
  incoming: { socket: { remoteAddress: '203.0.113.7' } },
}
const context = { waitUntil() {}, passThroughOnException() {}, props: {} }
const answer = async () => {
  now += 10
  return (await app.request('/', undefined, env, context)).text()
}

for (let count = 0; count < 20; count += 1) await answer()
isWalking = true
const body = await answer()
isWalking = false
console.log(JSON.stringify({ body, steps }))
