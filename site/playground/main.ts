/** The page of the playground. */
import {
  byId,
  element,
  scrollByKeys,
  setText,
  showOptions,
  showPairs,
} from '../../cli/dashboard/page/dom.ts'
import { dollarText, durationText, numberText } from '../../cli/dashboard/page/text.ts'
import { ask } from './ask.ts'
import { showCompared } from './compared.ts'
import { showRequest } from './details.ts'
import { createEditor } from './editor/editor.ts'
import type { FieldDocs } from './editor/path.ts'
import type { Mark, Played } from './engine/answer.ts'
import type { TrafficOptions } from './engine/traffic.ts'
import { examples } from './scenarios.ts'
import { fragmentOf, type PageState, stateOf } from './state.ts'
import { drawTimeline } from './timeline.ts'
import { fillTraffic, trafficIn } from './traffic-form.ts'

const failure = byId('failure')
const fail = (error: unknown) =>
  setText(failure, error instanceof Error ? error.message : String(error))
addEventListener('error', ({ error }) => {
  if (error) fail(error) // a message without one is a warning, such as that of a ResizeObserver
})
addEventListener('unhandledrejection', ({ reason }) => fail(reason))

const form = byId<HTMLFormElement>('traffic')
const exampleChoice = byId<HTMLSelectElement>('example')
const watchedChoice = byId<HTMLSelectElement>('watched')
const policyChoice = byId<HTMLSelectElement>('policy')
const slider = byId<HTMLInputElement>('at')
const docs: Promise<FieldDocs> = fetch('./fields.json')
  .then((response) => response.json())
  .catch(() => ({}))

const editor = createEditor({
  parent: byId('editor'),
  docs,
  onChange: () => later(),
  onMarks: showMarks,
})
let log = ''
let played: Played | undefined
/** The address that this page has written: a change of it by the user has another one. */
let ownFragment = ''

const state = (): PageState => ({ text: editor.text(), traffic: trafficIn(form), log })

function showMarks(marks: Mark[]) {
  const errors = marks.filter(({ severity }) => severity === 'error').length
  setText(
    byId('marks-title'),
    marks.length === 0
      ? 'The linter has no findings.'
      : errors > 0
        ? 'The configuration does not run:'
        : 'Findings of the linter:',
  )
  byId('marks').replaceChildren(
    ...marks.map((mark) => {
      const item = element('li')
      const button = element('button', mark.message)
      button.type = 'button'
      button.className = mark.severity
      button.addEventListener('click', () => editor.show(mark))
      item.append(button)
      return item
    }),
  )
}

let timer: ReturnType<typeof setTimeout> | undefined
/** Plays the traffic again when the user pauses. */
function later() {
  clearTimeout(timer)
  timer = setTimeout(play, 300)
}

let runs = 0
async function play() {
  clearTimeout(timer)
  if (!form.checkValidity()) return
  runs += 1
  const run = runs
  const now = state()
  document.body.dataset.played = ''
  const watched = watchedChoice.value || undefined
  const result = await ask({ kind: 'play', scenario: { ...now, watched } }).catch(
    (error: Error) => ({ problem: error.message }),
  )
  if (run !== runs) return
  ownFragment = await fragmentOf(now)
  history.replaceState(null, '', `#${ownFragment}`)
  const example = examples.find(({ name }) => name === ownFragment)
  exampleChoice.value = example?.name ?? ''
  setText(byId('look'), example?.look ?? '')
  show(result)
  document.body.dataset.played = 'yes'
}

function show(result: Played | { problem: string }) {
  const isPlayed = !('problem' in result)
  setText(byId('problem'), isPlayed ? '' : result.problem)
  byId('result').hidden = !isPlayed
  setText(byId('note'), isPlayed ? result.note : '')
  if (!isPlayed) return
  played = result
  const { summary, served, windowMs } = result
  const policies = [
    ...new Set(result.samples.flatMap(({ limits }) => limits.map((one) => one.policy))),
  ]
  showOptions(
    policyChoice,
    policies.map((name) => [name, name]),
  )
  showOptions(watchedChoice, busiest(result))
  showPairs(byId('figures'), {
    requests: numberText(summary.requests),
    admitted: numberText(summary.admitted),
    refused: numberText(summary.refused),
    [`most of a client in ${durationText(windowMs)}`]: `${numberText(summary.most)} units`,
    'calls to Redis': numberText(summary.calls),
    'billed commands': numberText(summary.commands),
    'commands a request': numberText(summary.commands / Math.max(1, summary.requests)),
    'a month at this rate': dollarText(summary.dollarsAMonth),
  })
  slider.max = String(Math.max(0, served.length - 1))
  const refused = served.findIndex(({ decision }) => !decision.allowed)
  choose(Math.max(0, refused))
  showCompared(result)
}

/** The 20 clients with the most requests. */
const busiest = ({ served }: Played): [string, string][] =>
  [...Map.groupBy(served, ({ arrival }) => arrival.ip)]
    .sort(([, one], [, other]) => other.length - one.length)
    .slice(0, 20)
    .map(([ip, own]) => [ip, `${ip} (${numberText(own.length)} requests)`])

function choose(index: number) {
  slider.value = String(index)
  draw()
  if (played) showRequest(played, index, editor.text())
}

function draw() {
  if (!played) return
  const place = byId('timeline')
  drawTimeline(place, {
    played,
    policy: policyChoice.value,
    watched: watchedChoice.value,
    chosen: Number(slider.value),
    width: Math.max(300, place.clientWidth),
    onChoose: choose,
  })
}

async function open(fragment: string) {
  const opened = await stateOf(fragment)
  log = opened.log
  watchedChoice.replaceChildren()
  fillTraffic(form, opened.traffic as TrafficOptions, log)
  editor.setText(opened.text)
  await play()
}

showOptions(exampleChoice, [
  ['', 'your own'],
  ...examples.map(({ name, title }): [string, string] => [name, title]),
])
exampleChoice.addEventListener('change', () => {
  if (exampleChoice.value) open(exampleChoice.value)
})
form.addEventListener('input', ({ target }) => {
  if (target instanceof HTMLTextAreaElement) log = target.value
  fillTraffic(form, trafficIn(form), log)
  later()
})
form.addEventListener('submit', (event) => event.preventDefault())
watchedChoice.addEventListener('change', play)
policyChoice.addEventListener('change', draw)
slider.addEventListener('input', () => choose(Number(slider.value)))
byId('why')
  .closest('details')!
  .addEventListener('toggle', () => choose(Number(slider.value)))
byId('copy').addEventListener('click', async () => {
  await navigator.clipboard.writeText(location.href)
  setText(byId('copy'), 'Copied')
  setTimeout(() => setText(byId('copy'), 'Copy link'), 2000)
})
addEventListener('hashchange', () => {
  const fragment = location.hash.slice(1)
  if (fragment !== ownFragment) open(fragment)
})
scrollByKeys()
new ResizeObserver(draw).observe(byId('timeline'))
/** On the site, the scheme that the reader has chosen there. */
function followScheme() {
  let chosen: string | null = null
  try {
    chosen = localStorage.getItem('vitepress-theme-appearance')
  } catch {} // a browser may keep the page from its storage
  const isChosen = chosen === 'dark' || chosen === 'light'
  document.documentElement.style.colorScheme = isChosen ? chosen! : 'light dark'
}
followScheme()
addEventListener('storage', followScheme)
if (new URLSearchParams(location.search).has('embed')) document.body.classList.add('embedded')
open(location.hash.slice(1))
