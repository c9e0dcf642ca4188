/** Finds conditions and keys that need Cloudflare's Bot Management. */
import type { Condition } from '../core/config/schema/condition.ts'
import { type Found, type ListRule, type PolicyRule, partsOf, titleOf } from './facts.ts'
import { didYouMean } from './nearest.ts'

/** Cloudflare's categories of verified bots: https://developers.cloudflare.com/bots/concepts/bot/verified-bots/categories/ */
const CATEGORIES = [
  'Academic Research',
  'Accessibility',
  'Advertising & Marketing',
  'Aggregator',
  'AI Assistant',
  'AI Crawler',
  'AI Search',
  'Archiver',
  'Feed Fetcher',
  'Monitoring & Analytics',
  'Other',
  'Page Preview',
  'Search Engine Crawler',
  'Search Engine Optimization',
  'Security',
  'Webhooks',
]

const OTHER_CATEGORY = 'Correct the category, or accept the finding if Cloudflare reports it.'

const BOT_FIELDS = ['verifiedBot', 'ja4', 'botScore'] as const

const needed = (path: string, title: string, field: string): Found => ({
  path,
  message: `${title} uses ${field}, which Cloudflare reports only for zones of the Enterprise plan with Bot Management.`,
  hint: 'Accept the finding if the zone has it. Without it, the condition never matches, and the key part is missing.',
})

function inCondition(condition: Condition, at: string, title: string): Found[] {
  const fields = BOT_FIELDS.filter((field) => condition[field] !== undefined)
  const categories = Array.isArray(condition.verifiedBot) ? condition.verifiedBot : []
  const unknown = categories.filter(
    (name) => !CATEGORIES.some((known) => known.toLowerCase() === name),
  )
  return [
    ...fields.map((field) => needed(`${at}.${field}`, title, field)),
    ...unknown.map(
      (name): Found => ({
        code: 'unknown-bot-category',
        path: `${at}.verifiedBot`,
        message: `${title} uses ${JSON.stringify(name)}, which is not one of Cloudflare's categories of verified bots.`,
        hint: didYouMean(name, CATEGORIES, OTHER_CATEGORY),
      }),
    ),
    ...(condition.not ?? []).flatMap((one, index) =>
      inCondition(one, `${at}.not[${index}]`, title),
    ),
  ]
}

export const botConditions: PolicyRule = (policy, at) => {
  const title = `"${policy.name}"`
  return [
    ...inCondition(policy.match, `${at}.match`, title),
    ...policy.cost.rules.flatMap(({ condition }, index) =>
      inCondition(condition, `${at}.cost.rules[${index}]`, title),
    ),
    ...policy.reserve.flatMap(({ condition }, index) =>
      inCondition(condition, `${at}.reserve[${index}].match`, title),
    ),
    ...partsOf(policy, at)
      .filter(([{ source }]) => source === 'ja4' || source === 'verifiedBot')
      .map(([{ source }, path]) => needed(path, title, `the key part ${source}`)),
  ]
}

export const botConditionsInList: ListRule = (entry) =>
  inCondition(entry.condition, entry.at, titleOf(entry))
