/** One client: the state of each of its limits, and what an operator can do about them. */
import type { LimitState, LimitStatus } from '../../../src/core/base/decision.ts'
import { call, messageIn } from './call.ts'
import { button, byId, element, setText, showOptions, showPairs } from './dom.ts'
import { type ListedPolicy, limitText, type Target } from './policies.ts'
import { lastRefusals } from './seen.ts'
import { durationText, numberText, shareText } from './text.ts'

/** The event after an operation that may have changed a ban or a limit. */
export const CHANGED = 'sluice-changed'

const dialog = byId<HTMLDialogElement>('client')
const confirm = byId<HTMLFormElement>('confirm')
const limits = byId('client-limits')
const problem = byId('client-problem')
const done = byId('done')
const undo = byId<HTMLButtonElement>('undo')
const field = (name: string) => confirm.elements.namedItem(name) as HTMLInputElement

let policies: ListedPolicy[] = []
/** The client that the dialog shows. */
let client: { policy: string; target: Target; name: string } | undefined

/** Something that an operator can do about a limit. It is asked for, and can be undone. */
interface Action {
  name: 'Ban' | 'Unban' | 'Reset' | 'Raise limit' | 'Remove limit'
  /** What it does to the client, in one or two sentences. */
  effect: string
  limit?: number
  /** How long it is in force by default. */
  for?: string
  run(limit: number, time: string): Promise<unknown>
  undo?(): Promise<unknown>
  done: string
}

const pathOf = (policy: string, operation: string) =>
  `policies/${encodeURIComponent(policy)}/${operation}`

/** The path of the limit of a client. */
const limitPath = (policy: string, target: Target) =>
  pathOf(
    policy,
    `keys/${'subject' in target ? `subject:${target.subject}` : target.key.map((value) => encodeURIComponent(value ?? '')).join(',')}/limit`,
  )

function actionsFor(state: LimitState, target: Target, readAt: number): Action[] {
  const { policy, limit, remaining, bannedForMs, overriddenForMs } = state
  const listed = policies.find(({ name }) => name === policy)
  const post = (operation: string, more = {}) =>
    call(pathOf(policy, operation), { ...target, ...more })
  /** What is left of a time that was read. */
  const rest = (ms: number) => Math.max(1, Math.round(ms - (Date.now() - readAt)))
  const put = (limit: number, time: string | number) =>
    call(limitPath(policy, target), { limit, for: time }, 'PUT')
  const remove = () => call(limitPath(policy, target), undefined, 'DELETE')
  const used = `${numberText(Math.max(0, limit - remaining))} of ${numberText(limit)}`
  const actions: Action[] = []
  if (bannedForMs) {
    actions.push({
      name: 'Unban',
      effect: `Ends the ban of ${durationText(bannedForMs)}. Used units stay, so its next request may still be refused: Reset gives the whole quota back.`,
      run: () => post('unban'),
      undo: () => post('ban', { for: rest(bannedForMs) }),
      done: 'The ban has ended. Used units stay.',
    })
  } else if (listed?.bans) {
    actions.push({
      name: 'Ban',
      effect: `Each request of the client under ${policy} is refused.`,
      for: '1h',
      run: (_, time) => post('ban', { for: time }),
      undo: () => post('unban'),
      done: 'The client is banned.',
    })
  }
  if (listed?.overrides) {
    actions.push({
      name: 'Raise limit',
      effect: `Sets the limit of this client, now ${numberText(limit)}. Used units stay counted.`,
      limit: 2 * limit,
      for: '1d',
      run: put,
      undo: () => (overriddenForMs ? put(limit, rest(overriddenForMs)) : remove()),
      done: 'The client has a limit of its own.',
    })
  }
  if (overriddenForMs) {
    actions.push({
      name: 'Remove limit',
      effect: `The client gets the limit of the policy again, instead of ${numberText(limit)}.`,
      run: remove,
      undo: () => put(limit, rest(overriddenForMs)),
      done: 'The client has the limit of the policy.',
    })
  }
  actions.push({
    name: 'Reset',
    effect: `Deletes the ${used} used units and any ban. It cannot be undone.`,
    run: () => post('reset'),
    done: 'The client has its whole quota.',
  })
  return actions
}

/**
 * Opens the details of a client.
 * @param first asks for this action at once
 */
export async function openClient(
  policy: string,
  target: Target,
  name: string,
  first?: Action['name'],
) {
  client = { policy, target, name }
  setText(byId('client-title'), name)
  limits.replaceChildren(element('p', 'Reading its limits …'))
  byId('client-refusals').replaceChildren(
    ...lastRefusals(policy, name).map((text) => element('li', text)),
  )
  done.hidden = true
  confirm.hidden = true
  if (!dialog.open) dialog.showModal()
  await show(first)
}

/** The policies whose limits the client has: the one it was counted for, and those with the same key. */
function policiesOf({ policy, target }: NonNullable<typeof client>): string[] {
  const own = policies.find(({ name }) => name === policy)
  if (!own || ('plan' in target && target.plan)) return [policy]
  const others = policies.filter(
    ({ name, key }) => name !== policy && key.join() === own.key.join(),
  )
  return [policy, ...others.map(({ name }) => name)]
}

async function show(first?: Action['name']) {
  const shown = client!
  const { target } = shown
  setText(problem, '')
  try {
    const states = await Promise.all(
      policiesOf(shown).map((name) => call<LimitStatus>(pathOf(name, 'peek'), target)),
    )
    if (client !== shown) return // another client was opened meanwhile
    const readAt = Date.now()
    const all = states.flatMap((status) => status.limits)
    limits.replaceChildren(...all.map((state) => cardOf(state, actionsFor(state, target, readAt))))
    const actions = first && all[0] ? actionsFor(all[0], target, readAt) : []
    const action = actions.find((one) => one.name === first)
    if (action) ask(action, all[0]!.policy)
  } catch (error) {
    limits.replaceChildren()
    setText(problem, messageIn(error))
  }
}

function cardOf(state: LimitState, actions: Action[]): HTMLElement {
  const { policy, limit, remaining, resetAfterMs, retryAfterMs, allowed } = state
  const { bannedForMs, overriddenForMs } = state
  const used = Math.max(0, limit - remaining)
  const listed = policies.find(({ name }) => name === policy)
  const card = element('section')
  const meter = element('meter')
  // Green below 80 %, yellow below all of it, red above.
  Object.assign(meter, { max: limit, low: 0.8 * limit, high: 0.999 * limit, optimum: 0 })
  meter.value = bannedForMs ? limit : used
  meter.setAttribute('aria-label', `used share of ${policy}`)
  const list = element('dl')
  showPairs(list, {
    used: `${numberText(used)} of ${numberText(limit)} (${shareText(used, limit)})`,
    'next request': allowed ? 'passes' : `refused, wait ${durationText(retryAfterMs)}`,
    'full again in': resetAfterMs === 0 ? 'now' : durationText(resetAfterMs),
    ...(overriddenForMs && { 'limit of an operator': `for ${durationText(overriddenForMs)}` }),
    ...(listed?.bans && {
      ban: bannedForMs ? `banned for ${durationText(bannedForMs)}` : 'not banned',
    }),
  })
  const buttons = element('p')
  buttons.className = 'actions'
  buttons.append(...actions.map((one) => button(one.name, policy, () => ask(one, policy))))
  card.append(
    element('h3', listed ? `${policy}: ${limitText(listed)}` : policy),
    meter,
    list,
    buttons,
  )
  return card
}

let asked: Action | undefined

function ask(action: Action, policy: string) {
  asked = action
  const { name, effect, limit, for: time } = action
  setText(byId('confirm-text'), `${name} ${client!.name}, policy ${policy}? ${effect}`)
  byId('confirm-limit').hidden = limit === undefined
  field('limit').value = String(limit ?? 1)
  byId('confirm-for').hidden = time === undefined
  if (time) field('for').value = time
  setText(byId('confirm-yes'), name)
  confirm.hidden = false
  byId('confirm-yes').focus()
}

/** Runs a change, says what it did, and offers to undo it. */
async function change(run: () => Promise<unknown>, text: string, revert?: () => Promise<unknown>) {
  confirm.hidden = true
  try {
    await run()
  } catch (error) {
    setText(problem, messageIn(error))
    return
  }
  await show()
  setText(byId('done-text'), text)
  undo.hidden = !revert
  undo.onclick = () => void change(revert!, 'Undone.')
  done.hidden = false
  document.dispatchEvent(new Event(CHANGED))
}

confirm.addEventListener('submit', (event) => {
  event.preventDefault()
  const { run, undo, done } = asked!
  const [limit, time] = [Number(field('limit').value), field('for').value]
  void change(() => run(limit, time), done, undo)
})
byId('confirm-no').addEventListener('click', () => {
  confirm.hidden = true
})

byId('client-close').addEventListener('click', () => dialog.close())

const find = byId<HTMLFormElement>('find')
const select = find.elements.namedItem('policy') as HTMLSelectElement

/** Shows the choice of a policy and one field for each part of its key. */
export function showPolicyChoice(list: ListedPolicy[]) {
  policies = list
  showOptions(
    select,
    list.map(({ name }) => [name, name]),
  )
  showKeyFields()
}

function showKeyFields() {
  const { key: parts = [] } = policies.find(({ name }) => name === select.value) ?? {}
  const place = byId('find-key')
  if ([...place.children].map((one) => one.firstChild!.textContent).join() === parts.join()) return
  place.replaceChildren(
    ...parts.map((part) => {
      const label = element('label', part)
      const input = element('input')
      input.autocomplete = 'off'
      input.value = part === 'global' ? 'global' : ''
      label.append(input)
      return label
    }),
  )
}

select.addEventListener('change', showKeyFields)
find.addEventListener('submit', (event) => {
  event.preventDefault()
  const values = [...byId('find-key').querySelectorAll('input')].map(({ value }) => value || null)
  const plan = (find.elements.namedItem('plan') as HTMLInputElement).value
  const { key = [] } = policies.find(({ name }) => name === select.value) ?? {}
  const name = key.map((part, index) => `${part}=${values[index] ?? ''}`).join(',')
  void openClient(select.value, { key: values, ...(plan && { plan }) }, name)
})
