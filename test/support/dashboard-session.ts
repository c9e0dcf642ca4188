/** Opens a session of a dashboard as its page does. Returns the field `Cookie`. */
export async function openSession({ address }: { address: string }): Promise<string> {
  const { origin, hash } = new URL(address)
  const init = { method: 'POST', headers: { Origin: origin }, body: hash.slice(1) }
  const response = await fetch(`${origin}/session`, init)
  return response.headers.get('set-cookie')!.split(';', 1)[0]!
}
