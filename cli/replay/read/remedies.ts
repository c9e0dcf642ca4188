/** The line that makes a server log a fact, for each format. Clauses in the imperative. */
import type { Fact } from '../line.ts'

export type RemedyOf = (fact: Fact) => string

const headerOf = (fact: Fact) => (fact.startsWith('header:') ? fact.slice('header:'.length) : '')

/** Variables of nginx, with the names that the reader of JSON expects. Cloudflare sends the country in a header. */
const variables: Partial<Record<Fact, [field: string, variable: string]>> = {
  ip: ['remote_addr', '$remote_addr'],
  host: ['http_host', '$http_host'],
  query: ['request_uri', '$request_uri'],
  status: ['status', '$status'],
  country: ['country', '$http_cf_ipcountry'],
}

function variableOf(fact: Fact): [field: string, variable: string] | undefined {
  const name = `http_${headerOf(fact).replaceAll('-', '_')}`
  return headerOf(fact) ? [name, `$${name}`] : variables[fact]
}

/** The remedy for fields that have any name. */
export const mapRemedy: RemedyOf = (fact) =>
  `log it, and name its field: ${fact === 'host' ? '--host NAME or ' : ''}--map ${fact}=FIELD`

/** The remedy for formats whose fields are fixed. */
export const noRemedy: RemedyOf = () => 'replay a log of another server that has it'

export const nginxRemedy: RemedyOf = (fact) => {
  const [field, variable] = variableOf(fact) ?? []
  return variable ? `add "${field}":"${variable}" to log_format` : mapRemedy(fact)
}

/**
 * @param next the number of the first field behind those of the format
 * @param hasForwardedFor true if the field behind the user agent holds addresses
 */
export const combinedRemedy =
  (next: number, hasForwardedFor: boolean): RemedyOf =>
  (fact) => {
    if (fact === 'header:x-forwarded-for' && hasForwardedFor) return `--map ${fact}=forwardedFor`
    const [, variable] = variableOf(fact) ?? []
    const header = headerOf(fact) || (fact === 'host' && 'Host')
    if (!variable) return mapRemedy(fact)
    const apache = header ? ` (Apache: \\"%{${header}}i\\" to LogFormat)` : ''
    const given = fact === 'host' ? '--host NAME, or ' : ''
    return `${given}add "${variable}" to the end of log_format${apache}, with --map ${fact}=field${next}`
  }

export const caddyRemedy: RemedyOf = (fact) => {
  if (headerOf(fact)) return 'add log_credentials to servers in the global options'
  return fact === 'country' ? '--map country=request.headers.Cf-Ipcountry' : mapRemedy(fact)
}

const w3cFields: Partial<Record<Fact, string>> = {
  ip: 'c-ip',
  host: 'cs-host',
  query: 'cs-uri-query',
  status: 'sc-status',
}

export const w3cRemedy: RemedyOf = (fact) => {
  const field = headerOf(fact) ? `cs(${headerOf(fact)})` : w3cFields[fact]
  return field ? `add ${field} to the fields that the server logs` : mapRemedy(fact)
}

const logpushFields: Partial<Record<Fact, string>> = {
  ip: 'ClientIP',
  host: 'ClientRequestHost',
  query: 'ClientRequestURI',
  status: 'EdgeResponseStatus',
  country: 'ClientCountry',
  asn: 'ClientASN',
  colo: 'EdgeColoCode',
  'header:user-agent': 'ClientRequestUserAgent',
  'header:referer': 'ClientRequestReferer',
}

export const logpushRemedy: RemedyOf = (fact) =>
  logpushFields[fact]
    ? `add ${logpushFields[fact]} to the fields of the job`
    : `add the request header ${headerOf(fact)} to the custom fields of the zone, and RequestHeaders to the fields of the job`

export const traefikRemedy: RemedyOf = (fact) =>
  headerOf(fact)
    ? `add ${headerOf(fact)}: keep to accessLog.fields.headers.names, with --map ${fact}=request_${headerOf(fact).replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())}`
    : mapRemedy(fact)
