import { type Mutant, mutantsOf } from './mutant.ts'

const source = 'packages/upstash-bridge/src'
const folder = 'packages/upstash-bridge/test'
const rights = mutantsOf(`${source}/rights.ts`, folder)
const connection = mutantsOf(`${source}/connection.ts`, folder)
const permissions = mutantsOf(`${source}/permissions.ts`, folder)
const database = mutantsOf(`${source}/database.ts`, folder)
const request = mutantsOf(`${source}/request.ts`, folder)
const lines = mutantsOf(`${source}/source.ts`, folder)
const scripts = mutantsOf(`${source}/scripts.ts`, folder)
const translated = mutantsOf(`${source}/translated.ts`, folder)

/** Mutants of the bridge: what its tokens may do, and what a request may cost. */
export const bridgeMutants: Mutant[] = [
  rights('a script connects Redis to another host', ' -migrate', '', 'refused'),
  rights('a script reads the keys of other databases', ' -select', '', 'refused'),
  rights('a script administers Redis', ' -@admin', '', 'refused'),
  scripts(
    'a script without arguments reads the clock of Redis',
    "script.timed === 'absent' ? '' : '-'",
    "'-'",
    'clock',
  ),
  scripts(
    'a script that never allows it gets a time as its first argument',
    "script.timed === 'absent' ? '' : '-'",
    "''",
    'clock',
  ),
  connection(
    'after the first script of a pipeline is ended, the next one runs for ever',
    'replies.every((reply) => reply instanceof ErrorReply)',
    'replies.length > 0',
    'faults',
  ),
  database(
    'a script of another client is ended',
    'this.backend.giveUp(commands.some(runsCode))\n        reject',
    'this.backend.giveUp(true)\n        reject',
    'faults',
  ),
  database(
    'the bridge keeps the replies of a pipeline that has exceeded the limit',
    'size.add(reply)',
    '',
    'production',
  ),
  permissions(
    'a read-only token runs scripts',
    'scripts ? [...HARMLESS, ...SCRIPTS] : HARMLESS',
    '[...HARMLESS, ...SCRIPTS]',
    'access',
  ),
  request(
    'a large body is parsed, however many levels it has',
    'if (text.length > LONG) checkArrays(text, levels)',
    '',
    'linear',
  ),
  request('brackets in strings are levels', 'else if (isQuoted || char', 'else if (char', 'linear'),
  lines('each of many spaces begins a match', '(?<!\\s)', '', 'linear'),
  translated(
    'a text of the script with a mark is the annotation of the guard',
    'parts.splice(-3)',
    'parts.splice(1, 3)',
    'linear',
  ),
]
