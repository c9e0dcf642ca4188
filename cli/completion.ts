/** `sluice completion`: a script for the completion of commands and options in a shell. */
import type { Call, Command } from './call.ts'
import { optionsOf, readArguments, UsageError } from './options.ts'

const usage = (
  title: string,
) => `Prints a script with which a shell completes the commands and options of sluice,
also after npx.

  ${title} <shell>

  shell   bash, zsh or fish
  --help  show this text

Add it to the file that your shell reads at its start, again after an update:

  npx sluice completion bash >> ~/.bashrc
  npx sluice completion zsh >> ~/.zshrc
  npx sluice completion fish >> ~/.config/fish/config.fish`

interface Known {
  name: string
  about: string
  options: string[]
}

/** The scripts. After `npx` they complete unless the shell completes npx already. */
const scripts: Record<string, (known: Known[]) => string> = {
  bash: (known) => `_sluice() {
  local at=0 words=''
  while ((at < COMP_CWORD)) && [[ \${COMP_WORDS[at]##*/} != sluice ]]; do ((at += 1)); done
  if ((COMP_CWORD == at + 1)); then
    words='${namesOf(known)}'
  else
    case \${COMP_WORDS[at + 1]-} in
${cases(known, (options) => `words='${options}'`)}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice
complete -p npx > /dev/null 2>&1 || complete -o default -F _sluice npx`,
  zsh: (known) => `_sluice() {
  local at=1
  while ((at < CURRENT)) && [[ \${words[at]:t} != sluice ]]; do ((at += 1)); done
  if ((CURRENT == at + 1)); then
    compadd -- ${namesOf(known)}
  else
    case \${words[at + 1]} in
${cases(known, (options) => `compadd -- ${options}`)}
    esac
    _files
  fi
}
(($+functions[compdef])) || { autoload -Uz compinit && compinit; }
compdef _sluice sluice
(($+_comps[npx])) || compdef _sluice npx`,
  fish: (known) =>
    known
      .flatMap(({ name, about, options }) => [
        `complete -c sluice -n 'not __fish_seen_subcommand_from ${namesOf(known)}' -a ${name} -d "${about}"`,
        ...options.map(
          (option) =>
            `complete -c sluice -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`,
        ),
      ])
      .concat("complete -c npx -n '__fish_seen_subcommand_from sluice' -w sluice")
      .join('\n'),
}

const namesOf = (known: Known[]) => known.map(({ name }) => name).join(' ')

const cases = (known: Known[], then: (options: string) => string) =>
  known.map(({ name, options }) => `      ${name}) ${then(options.join(' '))} ;;`).join('\n')

export async function main(args: string[], call: Call, commands: Command[]): Promise<void> {
  const options = readArguments(args, {}, usage(call.title), call)
  if (!options) return
  const [shell = '', ...others] = options.positionals
  if (!Object.hasOwn(scripts, shell) || others.length > 0)
    throw new UsageError(`Expected a shell: ${Object.keys(scripts).join(', ')}`)
  const known: Known[] = []
  for (const command of commands) known.push({ ...command, options: await optionsOf(command) })
  console.log(scripts[shell]!(known))
}
