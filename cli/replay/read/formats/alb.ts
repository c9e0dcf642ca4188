import type { Fact, LogLine } from '../../line.ts'
import { LogError } from '../log.ts'
import type { CreateParser } from '../parser.ts'
import { Rejection } from '../rejection.ts'
import { noRemedy } from '../remedies.ts'
import { readHost, readRequest, unescapeField } from '../request.ts'
import { isoTime, timeProblem } from '../time.ts'
import { readSender, readStatus, readText, shared } from '../values.ts'
import { tokens } from './tokens.ts'

/** https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html */
const ALB = /^(https?|h2|grpcs|wss?) \d{4}-\d\d-\d\dT\S+ \S+ \S+ \S+ /
const [TIME, CLIENT, STATUS, REQUEST, USER_AGENT, DOMAIN, CREATED] = [1, 3, 8, 12, 13, 18, 21]
const FIELDS = 14

/** AWS Application Load Balancer. */
export const createAlb: CreateParser = (lines, { map }) => {
  if (!lines.some((line) => ALB.test(line))) return undefined
  if (map.size > 0)
    throw new LogError('map', 'The fields of an ALB log are fixed: leave out --map.')
  const facts: Fact[] = ['ip', 'host', 'query', 'status', 'header:user-agent']
  return {
    title: 'AWS Application Load Balancer',
    facts: new Set(facts),
    remedyOf: noRemedy,
    parse,
  }
}

const OTHER = new Rejection('the line does not begin as a line of an ALB does')
const UNCLOSED = new Rejection('a field in quotes is not closed')
const SHORT = new Rejection(`the line has fewer than ${FIELDS} fields`)

function parse(text: string): LogLine | Rejection {
  if (!ALB.test(text)) return OTHER
  const fields = tokens(text)
  if (!fields) return UNCLOSED
  if (fields.length < FIELDS) return SHORT
  // An ALB writes a line when the response ends. Clients are limited when the request arrives.
  const created = isoTime(fields[CREATED] ?? '')
  const time = Number.isNaN(created) ? isoTime(fields[TIME]!) : created
  const problem = timeProblem(time)
  if (problem) return problem
  const request = readRequest(fields[REQUEST]!, true)
  if (request instanceof Rejection) return request
  const domain = readText(fields[DOMAIN])
  const userAgent = readText(fields[USER_AGENT])
  const sender = readSender(fields[CLIENT]!)
  return {
    time,
    ip: sender?.ip,
    sender,
    method: request.method,
    target: request.target,
    host: request.host ?? (domain && readHost(domain)),
    status: readStatus(fields[STATUS]),
    userAgent: userAgent && shared(unescapeField(userAgent)),
    referer: undefined,
    country: undefined,
    asn: undefined,
    colo: undefined,
    headers: undefined,
  }
}
