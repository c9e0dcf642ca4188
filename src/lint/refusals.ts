/** Finds mistakes in the responses to refused requests. */
import type { Refusal } from '../core/config/schema/refusal.ts'
import { placeholders, type RefusalBodies } from '../core/config/schema/refusal-fields.ts'
import type { ConfigRule, Found, PolicyRule } from './facts.ts'

const SINGLE = new RegExp(`(?<!\\{)\\{(${placeholders.join('|')})\\}(?!\\})`)

/** Fields that Sluice sets after those of the refusal, and fields that frame the message. */
const OWN =
  /^(cache-control|retry-after|content-(type|length|encoding)|transfer-encoding|connection)$/i

function inRefusal(refusal: Refusal | undefined, at: string): Found[] {
  if (refusal === undefined || typeof refusal === 'function') return []
  const headers = refusal.headers ?? {}
  const { json, text, html } = Object(refusal.body) as RefusalBodies
  const texts: [string, string | undefined][] = [
    [`${at}.body.json`, JSON.stringify(json)],
    [`${at}.body.text`, text],
    [`${at}.body.html`, html],
    ...Object.entries(headers).map(([name, text]): [string, string] => [
      `${at}.headers.${name}`,
      text,
    ]),
  ]
  return [
    ...texts.flatMap(([path, text]): Found | [] => {
      const name = SINGLE.exec(text ?? '')?.[1]
      return name === undefined
        ? []
        : {
            code: 'single-brace',
            path,
            message: `{${name}} is sent as it is written, because a placeholder has two braces on each side.`,
            hint: `Write {{${name}}}.`,
          }
    }),
    ...Object.keys(headers)
      .filter((name) => OWN.test(name))
      .map(
        (name): Found => ({
          code: 'own-header',
          path: `${at}.headers.${name}`,
          message: `The header ${name} has no effect or breaks the response, because Sluice or the server sets it.`,
          hint: 'Remove the header.',
        }),
      ),
  ]
}

export const refusalOfPolicy: PolicyRule = ({ refusal }, at) => inRefusal(refusal, `${at}.refusal`)

export const refusalOfConfig: ConfigRule = ({ config }) => inRefusal(config.refusal, 'refusal')
