// Package rates limits how often calls are made: each class of calls has a token bucket for each player, address or credential. The
// login queue lets players in at a steady rate, in the order in which they came.
package rates
