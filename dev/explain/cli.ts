import { parseArgs } from 'node:util'
import { networkRange } from '../../src/base/ip.ts'
import { parseConfig } from '../../src/config/parse.ts'
import { loadConfig } from '../load-config.ts'
import { explain } from './explain.ts'
import { toJson, toText } from './print.ts'
import type { RequestTerms } from './request.ts'

const USAGE = `What the policies of sluice.config.ts make of one request. No Redis is asked.

  npm run explain -- --path /login [options]

  --path PATH      the path, and the query if any
  --method METHOD  default GET
  --host HOST      default www.example.com
  --ip ADDRESS     the client's; without it no address is known
  --header TEXT    'name: value'; several: once for each
  --cookie TEXT    'name=value'; several: once for each
  --country CODE   what Cloudflare tells of the client: DE
  --asn NUMBER     … 64500
  --colo CODE      … the data centre that answers: FRA
  --config FILE    default sluice.config.ts
  --json           for programs
  --help           this text

Variables that the configuration names (jwt.secret, apiKeys.known), and SLUICE_PROXY_TOKEN, are read from the environment:

  JWT_SECRET=… npm run explain -- --path /me --header 'authorization: Bearer …'`

/** A mistake on the command line. */
class UsageError extends Error {}

interface CliOptions {
  request: RequestTerms
  config: string
  json: boolean
}

/** Understands the command line. @throws UsageError that says what is wrong */
export function parseCli(args: string[]): CliOptions | 'help' {
  const values = read(args)
  if (values.help) return 'help'
  const { method = 'GET', host = 'www.example.com', path } = values
  if (path === undefined) throw new UsageError('--path: expected a path like "/login"')
  check('--path', path, /^\/[^\s#\p{Cc}]*$/u, 'a path like "/login?next=%2F", percent-encoded')
  check('--host', host, /^[^\s/?#@\\]+$/, 'a host like "www.example.com"')
  if (!URL.canParse(`https://${host}/`)) wrong('--host', 'a host like "www.example.com"', host)
  check(
    '--method',
    method,
    /^(?!(connect|trace|track)$)[\w!#$%&'*+.^`|~-]+$/i,
    'a method like "POST"',
  )
  const { ip, country, asn, colo } = values
  if (ip !== undefined && (ip.includes('/') || !networkRange(ip))) {
    wrong('--ip', 'an address like "203.0.113.7" or "2001:db8::7"', ip)
  }
  check('--country', country, /^[A-Za-z][A-Za-z\d]$/, 'a country code like "DE"')
  check('--asn', asn, /^\d{1,10}$/, 'a number like "64500"')
  check('--colo', colo, /^[A-Za-z]{3}$/, 'the code of a data centre like "FRA"')
  return {
    config: values.config ?? 'sluice.config.ts',
    json: values.json ?? false,
    request: {
      method,
      url: `https://${host}${path}`,
      path: path.replace(/\?.*/s, ''),
      headers: readHeaders(values.header ?? [], values.cookie ?? [], ip),
      cf: {
        ...(country && { country: country.toUpperCase() }),
        ...(asn && { asn: Number(asn) }),
        ...(colo && { colo: colo.toUpperCase() }),
      },
    },
  }
}

function read(args: string[]) {
  const text = { type: 'string' } as const
  const options = { path: text, method: text, host: text, ip: text, country: text, asn: text }
  const texts = { type: 'string', multiple: true } as const
  try {
    return parseArgs({
      args,
      options: {
        ...options,
        colo: text,
        config: text,
        header: texts,
        cookie: texts,
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function readHeaders(fields: string[], cookies: string[], ip: string | undefined): Headers {
  const headers = new Headers()
  for (const field of fields) {
    const [, name = '', value = ''] = /^([^:\s]+):(.*)$/s.exec(field) ?? []
    const flag = { host: '--host', 'cf-connecting-ip': '--ip' }[name.toLowerCase()]
    if (flag) throw new UsageError(`--header: ${name.toLowerCase()} is what ${flag} says`)
    try {
      headers.append(name, value)
    } catch {
      wrong('--header', "'name: value'", field)
    }
  }
  for (const cookie of cookies) check('--cookie', cookie, /^[^\s=;]+=[^;\p{Cc}]*$/u, "'name=value'")
  const sent = [headers.get('cookie') ?? [], cookies].flat().join('; ')
  if (sent) headers.set('cookie', sent)
  if (ip) headers.set('cf-connecting-ip', ip)
  return headers
}

function check(flag: string, text: string | undefined, pattern: RegExp, expected: string): void {
  if (text !== undefined && !pattern.test(text)) wrong(flag, expected, text)
}

function wrong(flag: string, expected: string, got: string): never {
  throw new UsageError(`${flag}: expected ${expected}, got ${JSON.stringify(got)}`)
}

export async function main(args: string[]): Promise<void> {
  try {
    const options = parseCli(args)
    if (options === 'help') return console.log(USAGE)
    const config = await loadConfig(options.config)
      .then(parseConfig)
      .catch((error) => {
        throw new Error(`${options.config}: ${error.message}`)
      })
    const explanation = await explain(config, options.request)
    console.log(options.json ? toJson(explanation) : toText(explanation))
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    if (error instanceof UsageError) console.error('--help tells more')
    process.exitCode = 1
  }
}
