/** Finds mistakes in the responses to refused requests. */
import type { Refusal } from '../core/config/schema/refusal.ts'
import {
  placeholders,
  type RefusalBodies,
  type RefusalOptions,
} from '../core/config/schema/refusal-fields.ts'
import type { ConfigRule, Found, PolicyRule } from './facts.ts'

const SINGLE = new RegExp(`(?<!\\{)\\{(${placeholders.join('|')})\\}(?!\\})`)

/** Fields that Sluice sets after those of the refusal, and fields that frame the message. */
const OWN =
  /^(cache-control|retry-after|content-(type|length|encoding)|transfer-encoding|connection)$/i

function inRefusal(refusal: Refusal | undefined, at: string): Found[] {
  const { headers = {}, body } = Object(refusal) as RefusalOptions
  const { json, text, html } = Object(body) as RefusalBodies
  const texts: [field: string, text: string | undefined][] = [
    ['body.json', JSON.stringify(json)],
    ['body.text', text],
    ['body.html', html],
    ...Object.entries(headers).map(([name, text]): [string, string] => [`headers.${name}`, text]),
  ]
  return [
    ...texts.flatMap(([field, text = '']) => {
      const [, name] = SINGLE.exec(text) ?? []
      if (name === undefined) return []
      return {
        path: `${at}.${field}`,
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
