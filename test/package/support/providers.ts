/** An origin that answers as OpenAI and GitHub do, with their limits and fields, and refuses what is beyond a part of a minute. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Arrival {
  at: number
  path: string
  status: number
}

/** Units that flow back all the time. */
class Budget {
  #left: number
  #at = Date.now()
  readonly #perMinute: number
  readonly #burst: number

  constructor(perMinute: number, burst: number) {
    this.#perMinute = perMinute
    this.#burst = burst
    this.#left = burst
  }

  get left(): number {
    const now = Date.now()
    const flown = ((now - this.#at) / 60_000) * this.#perMinute
    this.#at = now
    this.#left = Math.min(this.#burst, this.#left + flown)
    return this.#left
  }

  charge(units: number): void {
    this.#left = this.left - units
  }
}

/** Charges all budgets, or none if one of them has too little. */
function admit(costs: (readonly [Budget, number])[]): boolean {
  if (costs.some(([budget, units]) => budget.left < units)) return false
  for (const [budget, units] of costs) budget.charge(units)
  return true
}

/** OpenAI estimates the tokens of a request when it arrives. */
const ESTIMATE = 1500

/**
 * Starts the origin: OpenAI below `/v1/`, GitHub elsewhere. It admits a little more at once than the guides send, since the network delays
 * requests. The prompt `long` has a long answer. A stream ends after a request of `/go-on`. A request of `/other-program?seconds=` uses the
 * token of GitHub up for this time.
 */
export async function startProviders() {
  const arrivals: Arrival[] = []
  const openai = { requests: new Budget(500, 22), tokens: new Budget(200_000, 23_000), open: 0 }
  const openaiMinute = { requests: new Budget(500, 500), tokens: new Budget(200_000, 200_000) }
  const github = { points: new Budget(900, 60), content: new Budget(80, 6), left: 5000, open: 0 }
  const goOn: (() => void)[] = []
  let emptyUntil = 0

  function answer(response: ServerResponse, path: string, status: number, fields: object) {
    arrivals.push({ at: Date.now(), path, status })
    response.writeHead(status, { 'Content-Type': 'application/json', ...fields })
  }

  async function chat(request: IncomingMessage, response: ServerResponse) {
    const { stream, messages } = JSON.parse(await text(request))
    const costs = [
      [openai.requests, 1],
      [openai.tokens, ESTIMATE],
    ] as const
    const isAllowed = openai.open < 20 && admit([...costs])
    if (isAllowed) {
      openai.open += 1
      response.once('close', () => (openai.open -= 1))
      admit([
        [openaiMinute.requests, 1],
        [openaiMinute.tokens, ESTIMATE],
      ])
    }
    answer(response, '/v1/chat/completions', isAllowed ? 200 : 429, {
      'x-ratelimit-limit-requests': 500,
      'x-ratelimit-limit-tokens': 200_000,
      'x-ratelimit-remaining-requests': Math.floor(openaiMinute.requests.left),
      'x-ratelimit-remaining-tokens': Math.floor(openaiMinute.tokens.left),
      'x-ratelimit-reset-requests': '120ms',
      'x-ratelimit-reset-tokens': '1.2s',
      ...(!isAllowed && { 'retry-after-ms': 500, 'retry-after': 1 }),
      ...(isAllowed && stream && { 'Content-Type': 'text/event-stream; charset=utf-8' }),
    })
    if (!isAllowed) {
      const error = { message: 'Rate limit reached', type: 'tokens', code: 'rate_limit_exceeded' }
      response.end(JSON.stringify({ error }))
      return
    }
    const usage = { total_tokens: messages[0].content === 'long' ? 8000 : ESTIMATE }
    const message = { role: 'assistant', content: 'Hello.' }
    // A model answers after a while.
    if (!stream) {
      const body = { object: 'chat.completion', choices: [{ index: 0, message }], usage }
      setTimeout(() => response.end(JSON.stringify(body)), 50)
      return
    }
    const send = (choices: object[], fields = {}) =>
      response.write(
        `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices, ...fields })}\n\n`,
      )
    send([{ index: 0, delta: { content: 'Hel' } }])
    await new Promise<void>((resolve) => goOn.push(resolve))
    send([{ index: 0, delta: { content: 'lo.' } }])
    send([], { usage })
    response.end('data: [DONE]\n\n')
  }

  function rest({ method, url }: IncomingMessage, response: ServerResponse) {
    const isWrite = method !== 'GET'
    const isEmpty = Date.now() < emptyUntil
    const isAllowed =
      !isEmpty &&
      github.open < 100 &&
      admit([[github.points, isWrite ? 5 : 1], ...(isWrite ? [[github.content, 1] as const] : [])])
    if (isAllowed) {
      github.left -= 1
      github.open += 1
      response.once('close', () => (github.open -= 1))
    }
    const resetAt = isEmpty ? emptyUntil : Date.now() + 3_600_000
    answer(response, url!, isAllowed ? 200 : 403, {
      'x-ratelimit-limit': 5000,
      'x-ratelimit-remaining': isEmpty ? 0 : github.left,
      'x-ratelimit-used': isEmpty ? 5000 : 5000 - github.left,
      'x-ratelimit-reset': Math.ceil(resetAt / 1000),
      'x-ratelimit-resource': 'core',
      ...(!isAllowed && !isEmpty && { 'retry-after': 60 }),
    })
    const refusal = { message: 'You have exceeded a secondary rate limit.' }
    setTimeout(() => response.end(JSON.stringify(isAllowed ? { number: 1 } : refusal)), 50)
  }

  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://origin')
    if (pathname === '/v1/chat/completions') return void chat(request, response)
    if (pathname === '/other-program')
      emptyUntil = Date.now() + 1000 * +searchParams.get('seconds')!
    else if (pathname === '/go-on') goOn.shift()?.()
    else return rest(request, response)
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
