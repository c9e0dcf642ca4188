import { isIP } from 'node:net'
import { readV4 } from '../../../src/core/base/ip.ts'
import { cached } from '../cache.ts'
import type { LogLine } from '../line.ts'
import { Sender } from '../sender.ts'
import { forwardedFor } from './formats/aliases.ts'
import type { Property } from './parser.ts'
import { readHost } from './request.ts'
import { flat } from './text.ts'

/** The same text, without a reference to the text of which it is a part. */
export const shared = cached((text) => text)

/** The most IPv4 addresses that are remembered. */
const MOST = 100_000
const senders = new Map<number, Sender>()

/**
 * Finds the sender for an address between two positions, perhaps with a port. Of a list, as in `X-Forwarded-For` and `Forwarded`, it reads
 * the last address, because clients write those before it. Returns `undefined` for a host name, because policies count by addresses.
 */
export function readSender(text: string, from = 0, end = text.length): Sender | undefined {
  const number = readV4(text, from, end)
  if (number < 0) return otherSender(text.slice(from, end))
  const key = number | 0 // a small integer, which a map finds without an object
  let sender = senders.get(key)
  if (!sender) {
    if (senders.size >= MOST) senders.clear()
    sender = new Sender(flat(text.slice(from, end)))
    senders.set(key, sender)
  }
  return sender
}

export const readAddress = (text: string): string | undefined => readSender(text)?.ip

const otherSender = cached((text) => {
  const last = text.slice(text.lastIndexOf(',') + 1).trim()
  const one = /(?:^|;\s*)for="?([^";]*)/i.exec(last)?.[1] ?? last // RFC 7239
  const [, bracketed, withoutPort] = /^(?:\[(.+)\](?::\d+)?|([^:]+):\d+)$/.exec(one) ?? []
  const address = bracketed ?? withoutPort ?? one
  return isIP(address) ? new Sender(address) : undefined
})

/** The fields of `--map`. One of `X-Forwarded-For` that is mapped to the address is this header too. */
export function withChain(
  map: ReadonlyMap<Property, string>,
  valuesOf: (name: string) => unknown[],
): { map: ReadonlyMap<Property, string>; chain: string | undefined } {
  const name = map.get('ip')
  const isChain =
    name !== undefined &&
    (forwardedFor.includes(name) || valuesOf(name).some((value) => readText(value)?.includes(',')))
  if (!isChain) return { map, chain: undefined }
  return { map: new Map([['header:x-forwarded-for', name], ...map]), chain: name }
}

/** A value as text. Servers write `-` for a value that is absent. */
export function readText(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' || value === '-' ? undefined : value
  if (Array.isArray(value))
    return readText(value.filter((one) => typeof one === 'string').join(', '))
  return typeof value === 'number' ? String(value) : undefined
}

export function readStatus(value: unknown): number | undefined {
  const status = Number(readText(value) ?? Number.NaN)
  return status >= 100 && status <= 999 ? status : undefined
}

const KEPT = new Set<Property>(['userAgent', 'referer', 'asn'])

/** Sets a property of a line to a value of the log. The time, method, target and query are parts of a request and set elsewhere. */
export function setProperty(line: LogLine, property: Property, value: unknown): void {
  const text = readText(value)
  if (property.startsWith('header:')) {
    if (text === undefined) return
    line.headers ??= {}
    line.headers[property.slice('header:'.length)] = text
  } else if (property === 'ip') setSender(line, text ? readSender(text) : undefined)
  else if (property === 'host') line.host = (text && readHost(text)) ?? line.host
  else if (property === 'status') line.status = readStatus(value)
  else if (property === 'country') line.country = text?.toUpperCase()
  else if (property === 'colo') line.colo = text?.toUpperCase()
  else if (KEPT.has(property))
    line[property as 'userAgent' | 'referer' | 'asn'] = text && shared(text)
}

function setSender(line: LogLine, sender: Sender | undefined): void {
  line.sender = sender
  line.ip = sender?.ip
}
