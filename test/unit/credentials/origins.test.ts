/** Credentials as frameworks read them: a request that a framework accepts never counts as one without the credential. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
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

/** How frameworks find the bearer token in an `Authorization` field, by their sources or documentation. */
const bearerReaders: Record<string, Reader> = {
  // /(\S+)\s+(\S+)/, the scheme compared without letter case
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
  // re.split(r",\s*"), the one part whose first word is the scheme
  'Flask-JWT-Extended': (field) => {
    const parts = field.split(/,\s*/).map(pythonWords)
    const fitting = parts.filter(([scheme]) => scheme === 'Bearer')
    return fitting.length === 1 && fitting[0]!.length === 2 ? fitting[0]![1] : undefined
  },
  // ^Bearer (?<token>[a-zA-Z0-9-._~+/]+=*)$, without letter case
  'Spring Security': (field) => /^Bearer ([a-zA-Z0-9\-._~+/]+=*)$/i.exec(field)?.[1],
  // What follows the last "Bearer ", up to a comma.
  Laravel: (field) => {
    const at = field.toLowerCase().lastIndexOf('bearer ')
    return at < 0 ? undefined : field.slice(at + 7).split(',')[0]
  },
  // /^(Token|Bearer)\s+/ taken off, split at /(?:,|;|\t)\s*/, the first with an optional token="…"
  'Rails (http_token)': (field) => {
    if (!/^Bearer\s+/.test(field)) return undefined
    const first = field.replace(/^Bearer\s+/, '').split(/(?:,|;|\t)\s*/)[0]!
    return first.replace(/^token=/, '').replace(/^"+|"+$/g, '')
  },
}

const pythonWords = (text: string) => text.split(/[\s\x85]+/).filter((word) => word !== '')

/** How frameworks find the cookie `session` in a `Cookie` field. */
const cookieReaders: Record<string, Reader> = {
  // Python's http.cookies (Django, Flask of old): white space separates too, quoted values are unquoted, the last counts.
  'http.cookies': (field) => {
    const pattern =
      /\s*([\w!#%&'~`><@,:/$*+\-.^|)(?}{]+?)\s*(?:\s*=\s*("(?:[^\\"]|\\.)*"|[\w!#%&'~`><@,:/$*+\-.^|)(?}{=[\]]*))?\s*(?:\s+|;|$)/gy
    let found: string | undefined
    for (const [, key, value] of field.matchAll(pattern)) {
      if (key === 'session' && value !== undefined) found = unquote(value)
    }
    return found
  },
  // The npm package cookie before 1.0 (Express): the first counts, quotes around a value are taken off.
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
  // Go's net/http: quotes are taken off, all values are handed out, Request.Cookie has the first.
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
  // Perl's CGI::Cookie and RFC 2109: a comma separates as well.
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
    jwt: { secret: 'JWT', ...(from && { from: from as 'bearer' }) },
    policies: [{ name: 'a', limit: 5, window: '1m', key: 'jwt:tenant', onMissingKey: 'skip' }],
  })

/** Whose quota counts the request: `acme`, `shared`, or nobody's. */
async function charged(describeRequest: ReturnType<typeof createMatcher>, headers: HeadersInit) {
  const { policies } = await describeRequest('/', { headers }, { env: { JWT: SECRET } })
  return policies.filter(isMatch).map(({ partitionKey }) => partitionKey[0]![1] ?? 'shared')
}

const bearer = describeWith()
const cookie = describeWith('cookie:session')

describe('a bearer token counts for its tenant', () => {
  test.each([
    `Bearer ${TOKEN}`,
    `Bearer\t${TOKEN}`,
    `Bearer   ${TOKEN}`,
    `bEARER \t ${TOKEN}`,
    `Bearer ${TOKEN} x`,
    `Bearer ${TOKEN}\tx`,
    `Bearer ${TOKEN}, Bearer ${TOKEN}`,
  ])('as %j', async (field) => {
    expect(await charged(bearer, { Authorization: field })).toEqual(['acme'])
  })
})

describe('a bearer token that Sluice cannot read or verify is in the shared quota', () => {
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
    // Origins that take the second word, or all that is left without "Bearer ", do not peek at the scheme.
    `Token ${TOKEN}`,
    `DPoP ${TOKEN}`,
    `x ${TOKEN}`,
    TOKEN,
  ])('as %j', async (field) => {
    expect(await charged(bearer, { Authorization: field })).toEqual(['shared'])
  })
})

describe('a request without a token is skipped', () => {
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
  ])('as %j', async (headers) => {
    expect(await charged(bearer, headers as HeadersInit)).toEqual([])
  })
})

describe('a cookie counts', () => {
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
  ])('%s for %s', async (field, whose) => {
    expect(await charged(cookie, { Cookie: field })).toEqual([whose])
  })

  test.each([
    'a=b',
    'xsession=1',
    'a=session',
    'session',
    'session=',
    'session=""',
    'a="session="',
  ])('%s for nobody: there is no such cookie', async (field) => {
    expect(await charged(cookie, { Cookie: field })).toEqual([])
  })
})

describe('a token that a framework finds is counted, for its tenant or in the shared quota', () => {
  const readings = (readers: Record<string, Reader>, field: string) =>
    Object.entries(readers).flatMap(([name, read]) => {
      const tenant = tenants.get(read(field) ?? '')
      return tenant ? [{ name, tenant }] : []
    })

  /** Holds each framework against what Sluice charges. Returns the frameworks that found a token. */
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

  test('of an Authorization field', async () => {
    const words = ['Bearer', 'Bearer ', 'bearer ', 'Basic ', 'token=', 'x', 'a.b.c']
    const pieces = [TOKEN, OTHER, ...words, ' ', '\t', '\x85', ',', ';', '"', '=']
    const seen = await check(bearerReaders, pieces, (field) =>
      charged(bearer, { Authorization: field }),
    )
    expect(seen).toEqual(new Set(Object.keys(bearerReaders)))
  })

  test('of a Cookie field', async () => {
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
