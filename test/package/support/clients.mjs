/**
 * Runs in a new project with the packed package: calls a local OpenAI and GitHub with the real clients, as the guides make them, and prints
 * what it has seen as JSON. `together` runs in several processes at once, `alone` in one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { OutboundError } from 'sluice/outbound'
import { busy } from './busy.ts'
import { octokit } from './github.ts'
import { openai } from './openai.ts'

const { ORIGIN } = process.env
const times = (count, make) => Array.from({ length: count }, (_, index) => make(index))
const ask = (content = 'short', options = {}) =>
  openai.chat.completions.create({ model: 'gpt-5', messages: [{ role: 'user', content }] }, options)
const repository = { baseUrl: ORIGIN, owner: 'a', repo: 'b' }
const read = () => octokit.request('GET /repos/{owner}/{repo}/issues/1', repository)
const write = () =>
  octokit.request('POST /repos/{owner}/{repo}/issues', { ...repository, title: 'An issue' })

/** The error of a call, and how long the call took. */
async function failureOf(call) {
  const startedAt = performance.now()
  try {
    await call()
  } catch (error) {
    return { error, tookMs: performance.now() - startedAt }
  }
  throw new Error('the call has not failed')
}

const shown = ({ error: { status, cause }, tookMs }) => ({
  status,
  isTyped: cause instanceof OutboundError,
  code: cause?.code,
  retryAfterMs: cause?.retryAfterMs,
  tookMs,
})

async function together() {
  const [answers, statuses] = await Promise.all([
    Promise.all(times(10, () => ask())),
    Promise.all([...times(10, read), ...times(4, write)]),
  ])
  return {
    answers: answers.map(({ choices }) => choices[0].message.content),
    statuses: statuses.map(({ status }) => status),
  }
}

async function streamed() {
  const parts = []
  const stream = await openai.chat.completions.create({
    model: 'gpt-5',
    messages: [{ role: 'user', content: 'short' }],
    stream: true,
    stream_options: { include_usage: true },
  })
  for await (const { choices, usage } of stream) {
    parts.push(choices[0]?.delta.content ?? usage)
    // The origin sends the rest only when the first part has arrived.
    if (parts.length === 1) await fetch(`${ORIGIN}/go-on`)
  }
  return parts
}

/**
 * Answers that are longer than expected charge so much that the next turns are 23 s away. Calls that wait take the turns until `wait`, and
 * the first one beyond it fails.
 */
async function overWait() {
  await Promise.all(times(12, () => ask('long')))
  await sleep(200) // The last usage is charged after its answer.
  const left = new AbortController()
  const calls = times(30, () => failureOf(() => ask('short', { signal: left.signal })))
  const failure = await Promise.race(calls)
  left.abort()
  await Promise.all(calls)
  const answer = busy(failure.error.cause)
  return {
    error: shown(failure),
    answer: { status: answer.status, seconds: Number(answer.headers.get('Retry-After')) },
  }
}

async function afterOthers() {
  await fetch(`${ORIGIN}/other-program?seconds=1`)
  const { status } = await read()
  await fetch(`${ORIGIN}/other-program?seconds=3600`)
  const refused = await failureOf(read)
  return { status, refused: shown(refused), next: shown(await failureOf(read)) }
}

const seen =
  process.argv[2] === 'together'
    ? await together()
    : { parts: await streamed(), overWait: await overWait(), afterOthers: await afterOthers() }
console.log(JSON.stringify(seen))
