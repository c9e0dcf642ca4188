/** The state of the page in its address: after `#`, so that it never leaves the browser. */
import { type Pattern, patterns, type TrafficOptions } from './engine/traffic.ts'
import { type Example, examples } from './scenarios.ts'

/** What an address describes. */
export interface PageState {
  text: string
  traffic: TrafficOptions
  log: string
}

/** Browsers and chats cut longer addresses. */
const MAX_ADDRESS = 16_000
/** The most bytes that an address may unpack to. */
const MAX_STATE = 512 * 1024

const through = (bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream) =>
  new Response(new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair))

/** The fragment of a state; without the log if the address would be too long. */
export async function fragmentOf(state: PageState): Promise<string> {
  const example = examples.find((one) => isSame(one, state))
  if (example) return example.name
  const full = await packed(state)
  return full.length <= MAX_ADDRESS ? full : packed({ ...state, log: '' })
}

const isSame = (one: Example, { text, traffic, log }: PageState) =>
  one.text === text && JSON.stringify(one.traffic) === JSON.stringify(traffic) && !log

async function packed(state: PageState): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(state))
  const packed = await through(bytes, new CompressionStream('deflate-raw')).bytes()
  const text = Array.from(packed, (byte) => String.fromCharCode(byte)).join('')
  return `s=${btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/**
 * Reads the state of a fragment; that of the first example without one.
 * @throws {Error} if it describes no state, or names no example
 */
export async function stateOf(fragment: string): Promise<PageState> {
  if (fragment.startsWith('s=')) return checked(await unpacked(fragment.slice(2)))
  const example = fragment ? examples.find(({ name }) => name === fragment) : examples[0]!
  if (!example) throw new Error(`There is no example "${fragment}". Choose one from the list.`)
  return { text: example.text, traffic: example.traffic, log: '' }
}

async function unpacked(text: string): Promise<unknown> {
  try {
    const bytes = Uint8Array.from(
      atob(text.replaceAll('-', '+').replaceAll('_', '/')),
      (character) => character.charCodeAt(0),
    )
    const { body } = through(bytes, new DecompressionStream('deflate-raw'))
    const chunks: Uint8Array<ArrayBuffer>[] = []
    let size = 0
    for await (const chunk of body!) {
      size += chunk.length
      if (size > MAX_STATE) throw new Error('too long')
      chunks.push(chunk)
    }
    return JSON.parse(await new Blob(chunks).text())
  } catch {
    throw new Error('The address is damaged: it describes no configuration. Copy the whole link.')
  }
}

/** Another page may have made the address. */
function checked(state: unknown): PageState {
  const { text, traffic, log } = Object(state)
  const [first] = examples
  return {
    text: typeof text === 'string' ? text : first!.text,
    traffic: { ...first!.traffic, ...trafficIn(Object(traffic)) },
    log: typeof log === 'string' ? log : '',
  }
}

function trafficIn(given: Record<string, unknown>): Partial<TrafficOptions> {
  const whole = (name: keyof TrafficOptions, low: number, high: number) => {
    const value = given[name]
    const fits = Number.isInteger(value) && (value as number) >= low && (value as number) <= high
    return fits ? { [name]: value as number } : {}
  }
  return {
    ...(patterns.includes(given.pattern as Pattern) && { pattern: given.pattern as Pattern }),
    ...whole('requests', 1, 2000),
    ...whole('lengthMs', 1000, 30 * 86_400_000),
    ...whole('clients', 1, 500),
    ...(typeof given.method === 'string' && { method: given.method }),
    ...(typeof given.url === 'string' && { url: given.url }),
    ...whole('status', 200, 599),
    ...whole('durationMs', 0, 3_600_000),
    ...(typeof given.body === 'string' && { body: given.body }),
  }
}
