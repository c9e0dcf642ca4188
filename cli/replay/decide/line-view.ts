import { HOST } from '../../../src/core/base/host.ts'
import type { Address } from '../../../src/core/base/ip.ts'
import { addressReader } from '../../../src/core/request/client-address.ts'
import { compileForwarded } from '../../../src/core/request/forwarded.ts'
import { readings } from '../../../src/core/request/path.ts'
import { RequestView } from '../../../src/core/request/view.ts'
import { cached } from '../cache.ts'
import type { LogLine } from '../line.ts'

const ADDRESS = 'cf-connecting-ip'
/** Stands for a host that the log does not have, or that is not one. Policies that read the host are not replayed without it. */
const NO_HOST = 'unknown.invalid'

const isHost = (text: string) => HOST.test(text) && URL.canParse(`https://${text}/`)

/** The part of a request that policies read. An object of class `Request` would take 20 µs. */
export class LineRequest {
  readonly line: LogLine
  readonly cf: Pick<LogLine, 'country' | 'asn' | 'colo'>
  readonly headers: { get(name: string): string | null; keys(): Iterable<string> }

  constructor(line: LogLine) {
    this.line = line
    this.cf = line
    this.headers = this // saves an object for each line
  }
  get method(): string {
    return this.line.method
  }
  get url(): string {
    const { host = '', target } = this.line
    return `https://${isHost(host) ? host : NO_HOST}${target.startsWith('/') ? '' : '/'}${target}`
  }
  /** The names of the headers that the log has besides those of its format. */
  keys(): string[] {
    return Object.keys(this.line.headers ?? {})
  }
  /** Reads a header. */
  get(written: string): string | null {
    const name = written.toLowerCase()
    const { ip, host, userAgent, referer, headers } = this.line
    if (name === ADDRESS) return ip ?? null
    if (name === 'host') return host ?? null
    if (name === 'user-agent') return userAgent ?? null
    if (name === 'referer') return referer ?? null
    return headers && Object.hasOwn(headers, name) ? headers[name]! : null
  }
}

const runtime = { env: {}, context: undefined, waitUntil: () => {} }

/** The log has the address of the client itself, wherever `clientAddress` reads it. Some logs have it with a port. */
const readAddress = addressReader({ header: ADDRESS, trustedProxies: 1 }, undefined, {
  compileForwarded,
})

/** Creates the views of lines. Many lines have the same address, path and host, so that each is read once. */
export function lineViews(options: {
  caseSensitivePaths: boolean
}): (line: LogLine) => RequestView {
  const plain = (line: Partial<LogLine>) =>
    new RequestView(
      new LineRequest({ time: 0, method: 'GET', target: '/', ...line }) as unknown as Request,
      runtime,
      options,
      readAddress,
    )
  const addressOf = cached((ip) => plain({ ip }).address)
  const hostOf = cached((host) => plain({ host }).host)
  const pathsOf = cached((target) => plain({ target }).pathsBy(readings))

  class LineView extends RequestView {
    readonly line: LogLine
    constructor(line: LogLine) {
      super(new LineRequest(line) as unknown as Request, runtime, options, readAddress)
      this.line = line
    }
    override get address(): Address | undefined {
      return addressOf(this.line.ip ?? '')
    }
    override get host(): string {
      return hostOf(this.line.host ?? '')
    }
    override pathsBy(): string[] {
      return pathsOf(this.line.target)
    }
  }
  return (line) => new LineView(line)
}
