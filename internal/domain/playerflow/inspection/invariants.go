package inspection

// Invariants are the invariants that Audit checks, in words for operators: docs/spec/player-flow.md#invariants, and the
// races of docs/spec/reconnect.md#races that would break them.
var Invariants = map[string]string{
	"I1":  "A player has exactly one flow record, and each of its keys has at most one value.",
	"I2":  "A player with MATCHMAKING_ID also has PARTY_ID.",
	"I3":  "No player has MATCHMAKING_ID and GAME_INSTANCE_ID at the same time.",
	"I4":  "Either no member of a party has MATCHMAKING_ID, or all members have the same one.",
	"I5":  "A match commits for all of its players at once.",
	"I6":  "A player has GAME_INSTANCE_ID exactly while the player has a live membership in that game, and the game has not ended.",
	"I7":  "A player has PARTY_ID exactly while that party exists and lists the player as a member.",
	"I8":  "A player is in at most one party, one ticket and one game instance.",
	"I9":  "Each commit that changes a key raises the player's revision by one and is announced once.",
	"I10": "A call that changes something is answered only after its commit is durable.",
	"I11": "At most one login session controls a player.",
	"I12": "Nothing holds a player for ever: every key has a deadline, or depends on something that has one.",
	"I13": "Of a cancellation and a match for the same ticket exactly one wins.",
	"I14": "A party has no ticket while one of its members is in a game.",
	"I15": "A game has no more live memberships than seats.",
	"R3":  "While another device takes over, the membership is ACTIVE and one more player session is RESERVED for it.",
	"R5":  "The status of a membership agrees with that of its player session.",
	"R19": "A player session belongs to one player in one game.",

	"advice": "What the studio says of one search is kept only while that search, or the game that it led to, needs it.",
	"held":   "A search is HELD exactly while a member is away.",
	"leader": "A party with members has a leader.",
	"outbox": "An outbox keeps no more events than the player was told.",
}

// Meaning returns the invariant in words, for readers of a log or an answer.
func (v Violation) Meaning() string { return Invariants[v.Invariant] }
