/** Conditions that need Bot Management, and refusals. */
import { refusals } from '../../support/features.ts'
import { allowing, matching, one, priced, testFindings } from '../../support/lint.ts'

const accept = 'needs-bot-management'
const own = { use: [refusals()] }

/** needs-bot-management */
testFindings({
  'A policy matches by the bot score.': [
    'needs-bot-management policies[0].match.botScore',
    matching({ botScore: { below: 30 } }),
    one({ match: { botScore: { below: 30 } }, accept }),
  ],
  'A policy excludes verified bots.': [
    'needs-bot-management policies[0].match.not[0].verifiedBot',
    matching({ not: { verifiedBot: true } }),
    matching({ not: { asn: 64500 } }),
  ],
  'A policy counts by fingerprint.': [
    'needs-bot-management policies[0].key[1]',
    one({ key: ['ip', 'ja4'] }),
    one({ key: ['ip', 'asn'] }),
  ],
  'A reserve depends on the bot score.': [
    'needs-bot-management policies[0].reserve[0].match.botScore',
    one({ reserve: [{ match: { botScore: { below: 30 } }, share: 0.5 }] }),
    one({ reserve: [{ match: { asn: 64500 }, share: 0.5 }] }),
  ],
  'A cost depends on a fingerprint.': [
    'needs-bot-management policies[0].cost.rules[0].ja4',
    priced([{ ja4: 't13d*', cost: 2 }]),
    priced([{ asn: 64500, cost: 2 }]),
  ],
  'An entry of allow names verified bots.': [
    'needs-bot-management allow[0].verifiedBot',
    allowing({ verifiedBot: 'Search Engine Crawler' }),
    allowing({ verifiedBot: 'Search Engine Crawler', accept }),
  ],
})

/** unknown-bot-category */
testFindings({
  'A condition names an unknown category of bots.': [
    'unknown-bot-category policies[0].match.verifiedBot',
    one({ match: { verifiedBot: ['AI Crawler', 'AI Crawlers'] }, accept }),
    one({ match: { verifiedBot: ['ai crawler', 'AI Search'] }, accept }),
  ],
})

/** spoofable-list */
testFindings({
  'An entry of allow matches clients that send a query parameter.': [
    'spoofable-list allow[0].query',
    allowing({ query: { debug: true } }),
    allowing({ query: { token: '6bCV2rf4jKtQ9dXw' } }),
  ],
})

/** single-brace */
testFindings({
  'A body has a placeholder in single braces.': [
    'single-brace policies[0].refusal.body.html',
    one({ refusal: { body: { html: 'Wait {retryAfter} s' } } }, own),
    one({ refusal: { body: { html: 'Wait {{retryAfter}} s {color:red}' } } }, own),
  ],
  'A value of JSON has a placeholder in single braces.': [
    'single-brace refusal.body.json',
    one({}, { ...own, refusal: { body: { json: { limit: '{limit}' } } } }),
    one({}, { ...own, refusal: { body: { json: { limit: '{{limit}}' } } } }),
  ],
})

/** own-header */
testFindings({
  'A header of a refusal is set by Sluice itself.': [
    'own-header refusal.headers.Cache-Control',
    one({}, { ...own, refusal: { headers: { 'Cache-Control': 'public' } } }),
    one({}, { ...own, refusal: { headers: { 'X-Cache-Control': 'public' } } }),
  ],
})
