/** The page of the playground. */
import {
  byId,
  element,
  scrollByKeys,
  setText,
  showOptions,
  showPairs,
} from '../../cli/dashboard/page/dom.ts'
import { dollarText, numberText } from '../../cli/dashboard/page/text.ts'
import { ask } from './ask.ts'
import { showCompared } from './compared.ts'
import { showRequest } from './details.ts'
import { createEditor } from './editor/editor.ts'
import type { FieldDocs } from './editor/path.ts'
import type { Dial, Mark, Played } from './engine/answer.ts'
import { examples } from './scenarios.ts'
import { fragmentOf, type PageState, stateOf } from './state.ts'
import { drawTimeline } from './timeline.ts'
import { fillTraffic, mistakesIn, showFields, trafficIn } from './traffic-form.ts'

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
const dialInput = byId<HTMLInputElement>('dial')
const docs: Promise<FieldDocs> = fetch('./fields.json')
  .then((response) => response.json())
  .catch(() => ({}))

const editor = createEditor({
  parent: byId('editor'),
  docs,
  onChange: edited,
  onMarks: showMarks,
})
let log = ''
let played: Played | undefined
/** Where the slider writes: the `limit` of the policy that is shown. Undefined from a change of the text to its run. */
let dial: Dial | undefined
/** True while the slider writes into the text. */
let isDialing = false
/** The policy whose quota the user has chosen to see. */
let chosenPolicy = ''
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

function edited() {
  if (!isDialing) dial = undefined
  later()
}

let runs = 0
async function play() {
  clearTimeout(timer)
  showFields(form, played?.isCall ?? false)
  const mistakes = mistakesIn(form, byId('invalid'))
  setText(byId('invalid'), mistakes && `${mistakes}${KEPT()}`)
  if (mistakes) return
  runs += 1
  const run = runs
  const now = state()
  document.body.dataset.played = ''
  setText(byId('busy'), 'Running …')
  const watched = watchedChoice.value || undefined
  const result = await ask({ kind: 'play', scenario: { ...now, watched } }).catch(
    (error: Error) => ({ problem: error.message }),
  )
  if (run !== runs) return
  ownFragment = await fragmentOf(now)
  history.replaceState(null, '', `#${ownFragment}`)
  const example = examples.find(({ name }) => name === ownFragment)
  exampleChoice.value = example?.name ?? ''
  byId<HTMLAnchorElement>('whole').href = `./#${ownFragment}`
  setText(byId('look'), example?.look ?? '')
  setText(byId('busy'), '')
  if ('problem' in result) setText(byId('problem'), `${result.problem}${KEPT()}`)
  else show(result)
  document.body.dataset.played = 'yes'
}

const KEPT = () => (played ? ' The chart shows the last valid run.' : '')

function show(result: Played) {
  played = result
  setText(byId('problem'), '')
  byId('result').hidden = false
  const { summary, served, samples, clients, note, lesson, isCall } = result
  setText(byId('note'), note)
  setText(byId('lesson'), lesson)
  showFields(form, isCall)
  const policies = [...new Set(samples.flatMap(({ limits }) => limits.map((one) => one.policy)))]
  showOptions(
    policyChoice,
    policies.map((name) => [name, name]),
  )
  policyChoice.value = policies.includes(chosenPolicy) ? chosenPolicy : result.policy
  showOptions(
    watchedChoice,
    clients.map(([name, count]) => [name, `${name} (${numberText(count)} requests)`]),
  )
  showPairs(byId('figures'), {
    requests: numberText(summary.requests),
    admitted: numberText(summary.admitted),
    refused: numberText(summary.refused),
    'calls to Redis': numberText(summary.calls),
    'billed commands': numberText(summary.commands),
    'commands a request': numberText(summary.commands / Math.max(1, summary.requests)),
    'a month at this rate': dollarText(summary.dollarsAMonth),
  })
  slider.max = String(Math.max(0, served.length - 1))
  const refused = served.findIndex(({ decision }) => !decision.allowed)
  choose(Math.max(0, refused))
  showDial()
  showCompared(result)
}

/** The slider has the `limit` of the policy that is shown, and room above it. */
function showDial() {
  dial = played?.dials.find(({ policy }) => policy === policyChoice.value)
  dialInput.closest('label')!.hidden = !dial
  if (!dial) return
  const { value, policy } = dial
  if (!dialInput.matches(':active') || value > Number(dialInput.max)) {
    dialInput.max = String(Math.max(10, 3 * value))
    dialInput.step = String(Math.max(1, 10 ** Math.floor(Math.log10(value / 20))))
    dialInput.min = dialInput.step
  }
  dialInput.value = String(value)
  setText(byId('dial-title'), `limit of ${policy}: ${numberText(value)}`)
}

function turnDial() {
  if (!dial) return
  const { value } = dialInput
  isDialing = true
  editor.replace(dial, value)
  isDialing = false
  dial = { ...dial, to: dial.from + value.length, value: Number(value) }
  setText(byId('dial-title'), `limit of ${dial.policy}: ${numberText(dial.value)}`)
}

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
  setText(failure, '')
  const opened = await stateOf(fragment).catch((error) => {
    fail(error)
    return stateOf('')
  })
  log = opened.log
  chosenPolicy = ''
  watchedChoice.replaceChildren()
  fillTraffic(form, opened.traffic, log)
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
  later()
})
form.addEventListener('submit', (event) => event.preventDefault())
watchedChoice.addEventListener('change', play)
policyChoice.addEventListener('change', () => {
  chosenPolicy = policyChoice.value
  showDial()
  draw()
})
dialInput.addEventListener('input', turnDial)
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
/** A page that embeds the playground shows all of it: a scroll area within the page would catch the wheel. */
if (new URLSearchParams(location.search).has('embed')) {
  document.body.classList.add('embedded')
  const frame = window.frameElement as HTMLIFrameElement | null
  if (frame) {
    const fit = () => {
      frame.style.height = `${document.body.offsetHeight + 2}px`
    }
    new ResizeObserver(fit).observe(document.body)
  }
}
open(location.hash.slice(1))
