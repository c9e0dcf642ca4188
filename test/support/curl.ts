/** The part of curl that the documentation uses, so that its commands run where curl is not installed. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import parseArguments from 'string-argv'

export interface CurlCommand {
  urls: string[]
  method: string
  headers: Record<string, string>
  body: string | undefined
  /** `-i`: the output begins with the status line and the header fields. */
  include: boolean
  /** `-o`: the body is not printed. */
  discard: boolean
  /** `-w` */
  format: string
}

/** Expands the range of a URL, such as `[1-12]`. */
function expand(url: string): string[] {
  const [, before, first, last, after] = /^(.*)\[(\d+)-(\d+)\](.*)$/.exec(url) ?? []
  if (before === undefined) return [url]
  const count = Number(last) - Number(first) + 1
  return Array.from({ length: count }, (_, index) => `${before}${Number(first) + index}${after}`)
}

/** Joins the lines of a command that ends its lines with a backslash. */
export const unfolded = (text: string): string => text.replace(/ *\\\n */g, ' ')

export function parseCurl(command: string): CurlCommand {
  const [program, ...args] = parseArguments(unfolded(command).replace(/\s+#\s.*$/s, ''))
  if (program !== 'curl') throw new Error(`expected a curl command, got ${command}`)
  const parsed: CurlCommand = {
    ...{ urls: [], method: '', headers: {}, body: undefined },
    ...{ include: false, discard: false, format: '' },
  }
  const value = () => {
    const next = args.shift()
    if (next === undefined) throw new Error(`an option lacks its value in ${command}`)
    return next
  }
  while (args.length > 0) {
    const arg = args.shift()!
    if (arg === '-i') parsed.include = true
    else if (arg === '-I') Object.assign(parsed, { include: true, method: 'HEAD' })
    else if (arg === '-X') parsed.method = value()
    else if (arg === '-o') parsed.discard = value() !== ''
    else if (arg === '-w') parsed.format = value()
    else if (arg === '-d') parsed.body = value()
    else if (arg === '--json') {
      parsed.body = value()
      parsed.headers['Content-Type'] = 'application/json'
    } else if (arg === '-H') {
      const [, name, content] = /^([^:]+): ?(.*)$/s.exec(value())!
      parsed.headers[name!] = content!
    } else if (arg.startsWith('-') && arg !== '-s') {
      throw new Error(`test/support/curl.ts does not know the option ${arg} in ${command}`)
    } else if (arg !== '-s') parsed.urls.push(...expand(arg))
  }
  parsed.method ||= parsed.body === undefined ? 'GET' : 'POST'
  return parsed
}

export interface CurlAnswer {
  status: number
  header: (name: string) => string | undefined
  body: string
}

/** Sends a command's request to `base`, whatever host its URL names. The path is sent as written. */
export async function sendCurl(
  { method, body, headers }: Pick<CurlCommand, 'method' | 'body' | 'headers'>,
  url: string,
  base: string,
  more: Record<string, string>,
): Promise<CurlAnswer> {
  const [, host, path] = /^(?:https?:\/\/)?([^/]+)(\/.*)?$/.exec(url)!
  const { hostname, port } = new URL(base)
  const type = body !== undefined && { 'Content-Type': 'application/x-www-form-urlencoded' }
  const outgoing = request({
    ...{ hostname, port, method, path: path ?? '/', agent: false },
    headers: { Host: host, ...more, ...type, ...headers },
  })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return {
    status: response.statusCode!,
    header: (name) => response.headers[name.toLowerCase()]?.toString(),
    body: await text(response),
  }
}
