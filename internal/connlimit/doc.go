// Package connlimit bounds how many connections the service holds: in total, for each address, for each door, and for
// connections that have not presented a credential yet ("unproven").
//
// The operating system bounds descriptors, and a store that cannot open a file cannot write. So the limits are derived from
// the descriptor limit, less a reserve that no connection can take. When a limit is reached, a new connection takes the
// place of an unproven one where there is any: an attacker without credentials presses out itself, not the clients that
// sign in within milliseconds.
package connlimit
