/** `sluice completion`: the script, run by the shell that it is for. */
import { beforeAll, describe, expect, test } from 'vitest'
import { commands } from '../../cli/commands.ts'
import { optionsOf } from '../../cli/options.ts'
import { run, sluice } from '../support/dev-command.ts'

const names = commands.map(({ name }) => name)

/** What bash offers for the last word of a line. */
let offered: (words: string[]) => Promise<string[]>
beforeAll(async () => {
  const { stdout: script } = await sluice(['completion', 'bash'])
  offered = async (words) => {
    const line = `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; printf '%s\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = await run('bash', [
      '--norc',
      '-uc',
      `${script}\n${line}`,
      'bash',
      ...words,
    ])
    expect(stderr).toBe('')
    return stdout.trim().split('\n')
  }
})

describe('in bash', () => {
  test.each(['sluice', 'npx sluice', 'node_modules/.bin/sluice', 'npx -y sluice'])(
    'After %s the commands are offered.',
    async (line) => {
      expect(await offered([...line.split(' '), ''])).toEqual(names)
      expect(await offered([...line.split(' '), 'ver'])).toEqual(['verify'])
    },
  )

  test.each(commands)(
    'After $name its options are offered, also further ones.',
    async (command) => {
      const options = await optionsOf(command)
      expect(options).toContain('--help')
      expect(await offered(['npx', 'sluice', command.name, '--'])).toEqual(options)
      expect(await offered(['sluice', command.name, '--x', 'y', '--hel'])).toEqual(['--help'])
    },
  )

  test('An option with a digit is offered whole, and each of two on one line of the help.', async () => {
    expect(await offered(['sluice', 'explain', '--ja'])).toEqual(['--ja4'])
    expect(await offered(['sluice', 'bridge', '--tls'])).toEqual(['--tls-cert', '--tls-key'])
  })

  test('After npx of another program, and after an unknown command, nothing is offered.', async () => {
    for (const words of [
      ['npx', 'vitest', ''],
      ['sluice', 'nothing', '--'],
    ])
      expect(await offered(words)).toEqual([''])
  })

  test('A completion of npx that exists stays.', async () => {
    const { stdout: script } = await sluice(['completion', 'bash'])
    const { stdout } = await run('bash', [
      '--norc',
      '-ec',
      `complete -W mine npx\n${script}\ncomplete -p npx`,
    ])
    expect(stdout).toBe("complete -W 'mine' npx\n")
  })
})

test.each(['zsh', 'fish'])('The script for %s has each command and each option.', async (shell) => {
  const { code, stdout } = await sluice(['completion', shell])
  expect(code).toBe(0)
  for (const command of commands) {
    expect(stdout).toContain(command.name)
    const spelled = (option: string) => (shell === 'zsh' ? option : `-l ${option.slice(2)}`)
    for (const option of await optionsOf(command)) expect(stdout).toContain(spelled(option))
  }
})

test.each([[[]], [['powershell']], [['bash', 'zsh']]])(
  'With %j the shells are listed.',
  async (args) => {
    expect(await sluice(['completion', ...args])).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'Expected a shell: bash, zsh, fish. To list all options: npx sluice completion --help\n',
    })
  },
)
