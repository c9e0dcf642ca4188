/** Credentials as frameworks read them. A request that a framework accepts must never count as a request without a credential. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jwt } from '../../../src/jwt/index.ts'
import { isMatch } from '../../../src/match/match.ts'
import { createMatcher } from '../../support/create-matcher.ts'

const SECRET = 'a secret of at least 32 bytes, or so it says'
const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
function tokenOf(tenant: string) {
  const signed = `${b64({ alg: 'HS256' })}.${b64({ tenant })}`
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`
}
const TOKEN = tokenOf('acme')
const OTHER = tokenOf('globex')
const tenants = new Map([
  [TOKEN, 'acme'],
  [OTHER, 'globex'],
])

type Reader = (field: string) => string | undefined

/** How frameworks find the bearer token in an `Authorization` header, according to their source or documentation. */
const bearerReaders: Record<string, Reader> = {
  // /(\S+)\s+(\S+)/, case-insensitive scheme
  'passport-jwt': (field) => {
    const [, scheme, token] = /(\S+)\s+(\S+)/.exec(field) ?? []
    return scheme?.toLowerCase() === 'bearer' ? token : undefined
  },
  // auth.split(), two words
  'Django REST framework': (field) => {
    const words = pythonWords(field)
    return words.length === 2 && words[0]!.toLowerCase() === 'bearer' ? words[1] : undefined
  },
  // split(" "), two words, /^Bearer$/i
  'express-jwt': (field) => {
    const words = field.split(' ')
    return words.length === 2 && /^Bearer$/i.test(words[0]!) ? words[1] : undefined
  },
  // re.split(r",\s*"), the only part whose first word is the scheme
  'Flask-JWT-Extended': (field) => {
    const parts = field.split(/,\s*/).map(pythonWords)
    const fitting = parts.filter(([scheme]) => scheme === 'Bearer')
    return fitting.length === 1 && fitting[0]!.length === 2 ? fitting[0]![1] : undefined
  },
  // ^Bearer (?<token>[a-zA-Z0-9-._~+/]+=*)$, case-insensitive
  'Spring Security': (field) => /^Bearer ([a-zA-Z0-9\-._~+/]+=*)$/i.exec(field)?.[1],
  // the text after the last "Bearer ", up to a comma
  Laravel: (field) => {
    const at = field.toLowerCase().lastIndexOf('bearer ')
    return at < 0 ? undefined : field.slice(at + 7).split(',')[0]
  },
  // /^(Token|Bearer)\s+/ removed, split at /(?:,|;|\t)\s*/, the first part with an optional token="…"
  'Rails (http_token)': (field) => {
    if (!/^Bearer\s+/.test(field)) return undefined
    const first = field.replace(/^Bearer\s+/, '').split(/(?:,|;|\t)\s*/)[0]!
    return first.replace(/^token=/, '').replace(/^"+|"+$/g, '')
  },
}

const pythonWords = (text: string) => text.split(/[\s\x85]+/).filter((word) => word !== '')

/** How frameworks find the cookie `session` in a `Cookie` header. */
const cookieReaders: Record<string, Reader> = {
  // Python's http.cookies (Django, old Flask): white space separates too, quoted values are unquoted, the last cookie counts.
  'http.cookies': (field) => {
    const pattern =
      /\s*([\w!#%&'~`><@,:/$*+\-.^|)(?}{]+?)\s*(?:\s*=\s*("(?:[^\\"]|\\.)*"|[\w!#%&'~`><@,:/$*+\-.^|)(?}{=[\]]*))?\s*(?:\s+|;|$)/gy
    let found: string | undefined
    for (const [, key, value] of field.matchAll(pattern)) {
      if (key === 'session' && value !== undefined) found = unquote(value)
    }
    return found
  },
  // The npm package cookie before 1.0 (Express): the first cookie counts, quotes around a value are removed.
  'cookie 0.7': (field) => {
    for (const pair of field.split(';')) {
      const at = pair.indexOf('=')
      if (at < 0 || pair.slice(0, at).trim() !== 'session') continue
      return pair
        .slice(at + 1)
        .trim()
        .replace(/^"(.*)"$/, '$1')
    }
    return undefined
  },
  // Go's net/http: quotes are removed, and Request.Cookie returns the first value.
  'net/http': (field) => {
    for (const pair of field.split(';')) {
      const [key, ...value] = pair.trim().split('=')
      const text = value.join('=')
      if (key !== 'session' || /[^\x20-\x7e]|[;\\]/.test(text)) continue
      const bare = text.replace(/^"(.*)"$/, '$1')
      if (!bare.includes('"')) return bare
    }
    return undefined
  },
  // Perl's CGI::Cookie and RFC 2109: a comma separates too.
  'CGI::Cookie': (field) => {
    for (const pair of field.split(/[;,] ?/)) {
      const [key, ...value] = pair.trim().split('=')
      if (key === 'session') return value.join('=')
    }
    return undefined
  },
}

/** http.cookies._unquote */
function unquote(value: string): string {
  if (!/^".*"$/.test(value)) return value
  return value
    .slice(1, -1)
    .replace(/\\(?:([0-3][0-7][0-7])|(.))/g, (_, octal, other) =>
      octal ? String.fromCharCode(Number.parseInt(octal, 8)) : other,
    )
}

const describeWith = (from?: string) =>
  createMatcher({
    jwt: jwt({ secret: 'JWT', ...(from && { from: from as 'bearer' }) }),
    policies: [{ name: 'a', limit: 5, window: '1m', key: 'jwt:tenant', onMissingKey: 'skip' }],
  })

/** The quotas that count the request: `acme`, `shared`, or none. */
async function charged(describeRequest: ReturnType<typeof createMatcher>, headers: HeadersInit) {
  const { policies } = await describeRequest('/', { headers }, { env: { JWT: SECRET } })
  return policies.filter(isMatch).map(({ partitionKey }) => partitionKey[0]![1] ?? 'shared')
}

const bearer = describeWith()
const cookie = describeWith('cookie:session')

describe('a bearer token that Sluice reads', () => {
  test.each([
    `Bearer ${TOKEN}`,
    `Bearer\t${TOKEN}`,
    `Bearer   ${TOKEN}`,
    `bEARER \t ${TOKEN}`,
    `Bearer ${TOKEN} x`,
    `Bearer ${TOKEN}\tx`,
    `Bearer ${TOKEN}, Bearer ${TOKEN}`,
  ])('The Authorization header %j counts for the tenant of its token.', async (field) => {
    expect(await charged(bearer, { Authorization: field })).toEqual(['acme'])
  })
})

describe('a bearer token that Sluice cannot read or verify', () => {
  test.each([
    `Bearer ${TOKEN}, Bearer x`,
    `Bearer ${TOKEN}, x`,
    `Bearer ${TOKEN};x`,
    `Bearer token="${TOKEN}"`,
    `Bearer\x85${TOKEN}`,
    `XBearer ${TOKEN}`,
    `Basic YTpi, Bearer ${TOKEN}`,
    `Basic YTpi Bearer ${TOKEN}`,
    `Bearer ${OTHER} Bearer ${TOKEN}`,
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(0, -3)}`,
    'Bearer a.b.c',
    'Bearer a.b.c.d.e',
    // Origins that use the second word, or the rest without "Bearer ", ignore the scheme.
    `Token ${TOKEN}`,
    `DPoP ${TOKEN}`,
    `x ${TOKEN}`,
    TOKEN,
  ])('The Authorization header %j counts in the shared quota.', async (field) => {
    expect(await charged(bearer, { Authorization: field })).toEqual(['shared'])
  })
})

describe('a request without a token', () => {
  test.each([
    [{}],
    [{ Authorization: '' }],
    [{ Authorization: 'Bearer' }],
    [{ Authorization: 'Basic YTpi' }],
    [{ Authorization: 'Digest username="a.b.c", realm="d.e.f", nonce="g"' }],
    [{ Authorization: 'AWS4-HMAC-SHA256 Credential=a/20261122/eu/s3/aws4_request, Signature=b' }],
    [{ Authorization: 'Bearer an-opaque-token' }],
    [{ Authorization: 'Bearer undefined' }],
    [{ Cookie: `session=${TOKEN}` }],
  ])('A request with the headers %j is skipped, because it has no token.', async (headers) => {
    expect(await charged(bearer, headers as HeadersInit)).toEqual([])
  })
})

describe('a token in a cookie', () => {
  test.each([
    [`session=${TOKEN}`, 'acme'],
    [`session="${TOKEN}"`, 'acme'],
    [` a=b; session = ${TOKEN} ;c=d`, 'acme'],
    [`session=${TOKEN}; session="${TOKEN}"`, 'acme'],
    [`session=${TOKEN}; session=x`, 'shared'],
    [`session=x; session=${TOKEN}`, 'shared'],
    [`session="\\${TOKEN.charCodeAt(0).toString(8)}${TOKEN.slice(1)}"`, 'shared'],
    [`session="${TOKEN}`, 'shared'],
    [`a=b, session=${TOKEN}`, 'shared'],
    [`a=b session=${TOKEN}`, 'shared'],
    [`a=b session = ${TOKEN}`, 'shared'],
    [`session=${TOKEN}, session=x`, 'shared'],
    ['session=nonsense', 'shared'],
  ])('The Cookie header %s counts in the quota %s.', async (field, quota) => {
    expect(await charged(cookie, { Cookie: field })).toEqual([quota])
  })

  test.each([
    'a=b',
    'xsession=1',
    'a=session',
    'session',
    'session=',
    'session=""',
    'a="session="',
  ])('The Cookie header %s is skipped, because it has no cookie named session.', async (field) => {
    expect(await charged(cookie, { Cookie: field })).toEqual([])
  })
})

describe('a token that a framework finds', () => {
  const readings = (readers: Record<string, Reader>, field: string) =>
    Object.entries(readers).flatMap(([name, read]) => {
      const tenant = tenants.get(read(field) ?? '')
      return tenant ? [{ name, tenant }] : []
    })

  /** Compares each framework with the quotas that Sluice charges. Returns the frameworks that found a token. */
  async function check(
    readers: Record<string, Reader>,
    pieces: string[],
    chargedFor: (field: string) => Promise<string[]>,
  ) {
    const seen = new Set<string>()
    const fields = fc
      .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 8 })
      .map((parts) => parts.join('').trim())
    await fc.assert(
      fc.asyncProperty(fields, async (field) => {
        const found = readings(readers, field)
        fc.pre(found.length > 0)
        const charged = await chargedFor(field)
        for (const { name, tenant } of found) {
          seen.add(name)
          expect([[tenant], ['shared']], `${name} reads ${field}`).toContainEqual(charged)
        }
      }),
      { numRuns: 500, maxSkipsPerRun: 1000 },
    )
    return seen
  }

  test('A token that a framework finds in an Authorization header counts for its tenant or in the shared quota.', async () => {
    const words = ['Bearer', 'Bearer ', 'bearer ', 'Basic ', 'token=', 'x', 'a.b.c']
    const pieces = [TOKEN, OTHER, ...words, ' ', '\t', '\x85', ',', ';', '"', '=']
    const seen = await check(bearerReaders, pieces, (field) =>
      charged(bearer, { Authorization: field }),
    )
    expect(seen).toEqual(new Set(Object.keys(bearerReaders)))
  })

  test('A token that a framework finds in a Cookie header counts for its tenant or in the shared quota.', async () => {
    const words = ['session=', 'session =', 'a=b', 'a="', 'x']
    const pieces = [TOKEN, `session=${TOKEN}`, `session="${TOKEN}"`, `session=${OTHER}`, ...words]
    const seen = await check(
      cookieReaders,
      [...pieces, ' ', '\t', ',', ';', '; ', '"', '=', '\\'],
      (field) => charged(cookie, { Cookie: field }),
    )
    expect(seen).toEqual(new Set(Object.keys(cookieReaders)))
  })
})
