import { isAmbiguous } from '../base/ambiguous-target.ts'
import type { Address } from '../base/ip.ts'
import type { Unusable } from '../base/part.ts'
import type { RuntimeContext } from '../base/runtime.ts'
import type { ReadAddress } from './client-address.ts'
import type { Message } from './message.ts'

/** A part of a described request that was too long to describe. What it may have is unreadable, and not missing. */
export type Omitted = 'headers' | 'query' | 'path' | 'body'

/** The parts of a request that the verification of a token reads. */
export type TokenView = Pick<
  RequestView,
  'request' | 'query' | 'search' | 'pathParameters' | 'env' | 'waitUntil'
> &
  Partial<Pick<RequestView, 'omitted'>>

/** Reads the claims of a request's verified token, as an object without a prototype; `undefined` if the request has no token. Never throws. */
export type Claims = (view: TokenView) => Promise<Record<string, unknown> | Unusable | undefined>

/** How paths are compared. */
export interface Cased {
  caseSensitivePaths: boolean
}

/** A request as policies see it. Reads each property when it is first needed, because few policies use all of them. */
export class RequestView implements RuntimeContext {
  // The constructor sets all fields, so the declarations set none.
  declare readonly request: Request
  declare readonly env: RuntimeContext['env']
  declare readonly waitUntil: RuntimeContext['waitUntil']
  declare readonly context: unknown
  declare readonly remoteAddress: string | undefined
  /** The message of the body that policies are matched with. Undefined until a policy needs it. */
  declare readonly message?: Message
  /** True with a verified token; `undefined` if the token is not valid, or if no condition reads it. */
  declare readonly jwt?: boolean | undefined
  /** True with a known API key; `undefined` if the key is not known, or if no condition reads it. */
  declare readonly apiKey?: boolean | undefined
  /** The reading of the path that policies are matched with. Absent for the first one. */
  declare readonly path?: string
  /** The parts that are not known. Absent for a request that is not described. */
  declare readonly omitted?: readonly Omitted[]
  declare private readonly caseSensitivePaths: boolean
  declare private readonly readAddress: ReadAddress
  declare private parsedUrl: URL | undefined
  declare private readPaths: string[] | undefined
  declare private client: { address: Address | undefined } | undefined

  constructor(
    request: Request,
    { env, waitUntil, context, remoteAddress }: RuntimeContext,
    { caseSensitivePaths }: Cased,
    readAddress: ReadAddress,
  ) {
    this.request = request
    this.env = env
    this.waitUntil = waitUntil
    this.context = context
    this.remoteAddress = remoteAddress
    this.caseSensitivePaths = caseSensitivePaths
    this.readAddress = readAddress
    this.parsedUrl = undefined
    this.readPaths = undefined
    this.client = undefined
  }

  with(properties: Partial<RequestView>): RequestView {
    return Object.create(this, Object.getOwnPropertyDescriptors(properties))
  }

  private get url(): URL {
    this.parsedUrl ??= new URL(this.request.url)
    return this.parsedUrl
  }
  /** Host in lower case, without port and final dot. */
  get host(): string {
    return this.url.hostname.replace(/\.$/, '').toLowerCase()
  }
  /** The readings of the path, in lower case unless paths are case-sensitive. `sent` is the path as it was sent. */
  pathsBy(readings: (path: string, sent?: string) => string[]): string[] {
    if (!this.readPaths) {
      const { url } = this.request
      // Workers keep the URL as it was sent.
      const sent = isAmbiguous(url) ? /^\w+:\/\/[^/?#]*([^?#]*)/.exec(url)?.[1] : undefined
      this.readPaths = readings(this.url.pathname, sent).map((path) =>
        this.caseSensitivePaths ? path : path.toLowerCase(),
      )
    }
    return this.readPaths
  }
  get method(): string {
    return this.request.method.toUpperCase() // `Request` keeps `patch`, which some origins read as PATCH
  }
  get query(): URLSearchParams {
    return this.url.searchParams
  }
  /** The query as it was sent, with `?`. */
  get search(): string {
    return this.url.search
  }
  /** What follows the first `;` of the path, with the query. Undefined without one. */
  get pathParameters(): string | undefined {
    const { pathname } = this.url
    const start = pathname.indexOf(';')
    return start < 0 ? undefined : pathname.slice(start + 1) + this.search
  }
  /** Address of the client. Reading it throws a `ConfigError` if `clientAddress` is not configured and the runtime is not Cloudflare. */
  get address(): Address | undefined {
    this.client ??= { address: this.readAddress(this) }
    return this.client.address
  }
  /** Country code in upper case: ISO 3166-1 alpha-2, `T1` for Tor, `XX` for unknown. */
  get country(): string | undefined {
    return this.known('country')?.toUpperCase()
  }
  get asn(): string | undefined {
    return this.known('asn')
  }
  /** IATA code of the Cloudflare data center. */
  get colo(): string | undefined {
    return this.known('colo')
  }
  get ja4(): string | undefined {
    return this.bot.ja4 || undefined
  }
  /** Bot score from 1 (a bot) to 99 (a human). 0 means that Cloudflare did not compute it. */
  get botScore(): number | undefined {
    return this.bot.score || undefined
  }
  /** Category of a verified bot; `'Other'` without a category, empty for another client, `undefined` if Cloudflare does not report it. */
  get verifiedBot(): string | undefined {
    const { verifiedBot } = this.bot
    const category = this.cf.verifiedBotCategory as string | undefined
    return verifiedBot
      ? category || 'Other'
      : (category ?? (verifiedBot === false ? '' : undefined))
  }
  private get bot(): { ja4?: string; score?: number; verifiedBot?: boolean } {
    return this.cf.botManagement ?? {}
  }
  private known(name: string): string | undefined {
    const value = this.cf[name]
    return value ? String(value) : undefined
  }
  /** The facts that Cloudflare adds to a request. A client could forge `CF-IPCountry` in a zone that does not add it. */
  private get cf(): Record<string, unknown> {
    return (this.request as { cf?: Record<string, unknown> }).cf ?? {}
  }
}

/** The address of the client; `undefined` also if the configuration does not say where it comes from. */
export function knownAddress(view: Pick<RequestView, 'address'>): Address | undefined {
  try {
    return view.address
  } catch {
    return undefined
  }
}

/** Memoizes a function by request, for all policies. Requests never share a promise, because on Workers they must not. */
export function oncePerRequest<View extends { request: Request }, T>(
  compute: (view: View) => Promise<T>,
): (view: View) => Promise<T> {
  const results = new WeakMap<Request, Promise<T>>()
  return (view) => {
    const known = results.get(view.request)
    if (known) return known
    const result = compute(view)
    results.set(view.request, result)
    return result
  }
}
