import { parseArgs } from 'node:util'
import { ConfigError } from '../../src/core/base/errors.ts'
import { HOST } from '../../src/core/base/host.ts'
import { networkRange } from '../../src/core/base/ip.ts'
import { UsageError } from '../options.ts'
import { say } from '../paint.ts'
import { hostOf } from '../project/hosts.ts'
import { CONFIG_FILE, placed } from '../project/load-config.ts'
import { explain } from './explain.ts'
import { toJson, toText } from './print.ts'
import type { RequestTerms } from './request.ts'

const usage = (
  command: string,
) => `Shows which policies of sluice.config.ts apply to a request, with its keys and
costs, and why the others do not apply. Needs no Redis and charges nothing.

  ${command} --path /login [options]

  --path PATH      the path, with the query if there is one (required)
  --method METHOD  the method (default GET)
  --host HOST      the host (default www.example.com)
  --ip ADDRESS     the client's address (default unknown)
  --header TEXT    a header field, as 'name: value'; repeatable
  --cookie TEXT    a cookie, as 'name=value'; repeatable
  --body TEXT      the body, sent as POST and application/json unless --method
                   and --header say otherwise
  --country CODE   the client's country according to Cloudflare, such as DE
  --asn NUMBER     the client's network according to Cloudflare, such as 64500
  --colo CODE      the Cloudflare data centre, such as FRA
  --ja4 TEXT       the JA4 fingerprint according to Cloudflare
  --bot-score N    the bot score according to Cloudflare, from 1 to 99
  --verified-bot CATEGORY
                   a verified bot according to Cloudflare, such as 'AI Crawler';
                   'no' for another client
  --config FILE    the configuration (default sluice.config.ts)
  --json           print JSON
  --help           show this text

The environment provides the variables that the configuration names (jwt.secret,
apiKeys.known), and SLUICE_PROXY_TOKEN:

  JWT_SECRET=… ${command} --path /me --header 'authorization: Bearer …'`

interface CliOptions {
  request: RequestTerms
  config: string
  json: boolean
}

/** Parses the command line. @throws UsageError */
export function parseCli(args: string[]): CliOptions | 'help' {
  const values = read(args)
  if (values.help) return 'help'
  const { body, host = 'www.example.com', path } = values
  const { method = body === undefined ? 'GET' : 'POST' } = values
  if (path === undefined) throw new UsageError('--path: expected a path like "/login"')
  check('--path', path, /^\/[^\s#\p{Cc}]*$/u, 'a path like "/login?next=%2F", percent-encoded')
  check('--host', host, HOST, 'a host like "www.example.com"')
  if (!URL.canParse(`https://${host}/`)) wrong('--host', 'a host like "www.example.com"', host)
  check(
    '--method',
    method,
    /^(?!(connect|trace|track)$)[\w!#$%&'*+.^`|~-]+$/i,
    'a method like "POST"',
  )
  if (body !== undefined && /^(get|head)$/i.test(method)) {
    throw new UsageError(`--body: a ${method} request has no body`)
  }
  const { ip, country, asn, colo, ja4 } = values
  const { 'bot-score': score, 'verified-bot': bot } = values
  if (ip !== undefined && (ip.includes('/') || !networkRange(ip))) {
    wrong('--ip', 'an address like "203.0.113.7" or "2001:db8::7"', ip)
  }
  check('--country', country, /^[A-Za-z][A-Za-z\d]$/, 'a country code like "DE"')
  check('--asn', asn, /^\d{1,10}$/, 'a number like "64500"')
  check(
    '--ja4',
    ja4,
    /^\w{10}_\w{12}_\w{12}$/,
    't13d1516h2_8daaf6152771_02713d6af862, or another JA4',
  )
  check('--bot-score', score, /^[1-9]\d?$/, 'a score from 1 to 99')
  check('--verified-bot', bot, /./, "a category like 'AI Crawler', or no")
  check('--colo', colo, /^[A-Za-z]{3}$/, 'the code of a data centre like "FRA"')
  return {
    config: values.config ?? CONFIG_FILE,
    json: values.json ?? false,
    request: {
      method,
      url: `https://${host}${path}`,
      path: path.replace(/\?.*/s, ''),
      headers: readHeaders(values, body),
      body,
      cf: {
        ...(country && { country: country.toUpperCase() }),
        ...(asn && { asn: Number(asn) }),
        ...(colo && { colo: colo.toUpperCase() }),
        botManagement: {
          ...(ja4 && { ja4 }),
          ...(score && { score: Number(score) }),
          ...(bot && { verifiedBot: bot !== 'no' }),
        },
        ...(bot && bot !== 'no' && { verifiedBotCategory: bot }),
      },
    },
  }
}

function read(args: string[]) {
  const text = { type: 'string' } as const
  const options = { path: text, method: text, host: text, ip: text, country: text, body: text }
  const texts = { type: 'string', multiple: true } as const
  try {
    return parseArgs({
      args,
      options: {
        ...options,
        asn: text,
        colo: text,
        ja4: text,
        'bot-score': text,
        'verified-bot': text,
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

function readHeaders(
  {
    header: fields = [],
    cookie: cookies = [],
    ip,
  }: Pick<ReturnType<typeof read>, 'header' | 'cookie' | 'ip'>,
  body: string | undefined,
): Headers {
  const headers = new Headers()
  for (const field of fields) {
    const [, name = '', value = ''] = /^([^:\s]+):(.*)$/s.exec(field) ?? []
    const flag = { host: '--host', 'cf-connecting-ip': '--ip' }[name.toLowerCase()]
    if (flag) throw new UsageError(`--header: set ${name.toLowerCase()} with ${flag}`)
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
  if (body !== undefined && !headers.has('content-type')) {
    headers.set('content-type', 'application/json')
  }
  return headers
}

function check(flag: string, text: string | undefined, pattern: RegExp, expected: string): void {
  if (text !== undefined && !pattern.test(text)) wrong(flag, expected, text)
}

function wrong(flag: string, expected: string, got: string): never {
  throw new UsageError(`${flag}: expected ${expected}, got ${JSON.stringify(got)}`)
}

/**
 * Prints an explanation. Sets the exit code: 2 after a mistake on the command line, 1 after another error.
 * @param command how the user calls this program, for the usage
 * @param onUsageError prints a mistake on the command line
 */
export async function main(
  args: string[],
  command = 'npx sluice explain',
  onUsageError = (message: string) =>
    console.error(`${message}\nRun with --help to list all options.`),
): Promise<void> {
  try {
    const options = parseCli(args)
    if (options === 'help') return console.log(usage(command))
    const host = await hostOf(options.config)
    const config = await host
      .load()
      .then(host.parse)
      .catch((error) => {
        const isOfApp = error instanceof ConfigError && !host.isGateway
        const judged = isOfApp ? `\n${host.sentence}` : ''
        throw new Error(placed(options.config, error) + judged)
      })
    if (!host.hasRequests)
      throw new Error(`${options.config}: it has limits by name and key, which apply to no request`)
    const explanation = await explain(config, options.request)
    if (!host.isGateway) explanation.notes.push(host.sentence.replace(/^J(.*)\.$/, 'j$1'))
    if (options.json) console.log(toJson(explanation))
    else say(toText(explanation))
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    if (error instanceof UsageError) onUsageError(message)
    else console.error(message)
    process.exitCode = error instanceof UsageError ? 2 : 1
  }
}
