import { randomBytes } from 'node:crypto'

const USER = 'upstash-bridge'
const PASSWORD = randomBytes(32).toString('hex')

/**
 * What the bridge and its clients need, without the commands that leave the database: Redis checks the rights of a connection
 * for the commands inside scripts, too. CLUSTER SLOTS and ROLE are for the bridge. Scripts cannot call ROLE.
 */
const RULES =
  '~* allchannels +@all -@admin -migrate -move -select -swapdb +cluster|slots +role'.split(' ')

/** True if the operator has chosen the rights, by naming a user. */
export function namesUser(url: string): boolean {
  return new URL(url).username !== ''
}

/**
 * Logs in as a user that can run no command that leaves the database. Creates it first, since a restart of Redis forgets it.
 * @throws Error when Redis does not accept the user
 */
export async function limitRights(client: {
  sendCommand(command: string[]): Promise<unknown>
}): Promise<void> {
  const user = ['ACL', 'SETUSER', USER, 'reset', 'on', `>${PASSWORD}`, ...RULES]
  // One after the other: Redis 7.4 and 8.0 do not reply to a refused AUTH that comes in the same packet.
  const [created] = await Promise.allSettled([client.sendCommand(user)])
  const [loggedIn] = await Promise.allSettled([client.sendCommand(['AUTH', USER, PASSWORD])])
  // While a script runs, Redis refuses ACL SETUSER, and accepts AUTH if this process has created the user last.
  if (loggedIn.status === 'fulfilled') return
  const { reason } = created.status === 'rejected' ? created : loggedIn
  throw new Error(
    `it does not let the bridge limit the rights of scripts (${reason.message}). To keep the rights of a user, name it in the URL, such as redis://default:password@host`,
    { cause: reason },
  )
}
