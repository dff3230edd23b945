package access

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Bounds of the generations of the cell's secret.
const (
	// SecretOverlap is how long an earlier generation is accepted unless a rotation says otherwise. The registration of a sign-in client is valid for
	// 90 days; everything else that is signed and cannot be renewed meanwhile expires sooner.
	SecretOverlap = 90 * 24 * time.Hour
	// SecretOverlapMin covers connection tokens, which the earlier generation still signs for a while after a rotation.
	SecretOverlapMin = 30 * time.Minute
	SecretOverlapMax = 366 * 24 * time.Hour
	// SecretsMax is how many generations can be in use: one signs, one may be being distributed to the nodes, and the others are accepted. Each one
	// costs a verification attempt.
	SecretsMax = 4
	// secretsKept is how many generations are recorded, including ended ones.
	secretsKept = 32

	secretNodesMax   = 64
	secretTextMax    = 128 // bytes of a check, of a node's name or of a purpose
	secretUsesMax    = SecretsMax
	firstSecret      = 1
	secretNeverEnded = domain.Time(0)
)

// SecretGeneration is a generation of the cell's secret. The secret itself is not in it, but in the nodes' data directories.
type SecretGeneration struct {
	Number    uint32
	Check     string // of the secret; see TakenOver.Secret
	Prepared  domain.Time
	By        Actor
	Overlap   time.Duration // how long the previous generation is accepted once this one signs
	Holders   []string      // nodes that have it, until it signs; never changed in place
	Activated domain.Time   // when it began to sign; 0: it is being distributed to the nodes
	Until     domain.Time   // date of last use; 0: no later generation signs
	Ended     domain.Time   // 0: its signatures are accepted
	EndedBy   Actor         // zero if it ended at its date of last use
	LastUse   SecretUse     // of one of its signatures, after a later generation began to sign
}

// SecretUse records when a signature of an earlier generation was accepted.
type SecretUse struct {
	Number  uint32 // 0 in the record of the generation itself
	At      domain.Time
	Purpose string // what was signed, in a few words
}

func (u *SecretUse) Fields(c *wire.Codec) {
	wire.Int(c, 1, &u.Number)
	wire.Int(c, 2, &u.At)
	c.Shared(3, &u.Purpose)
}

// Level implements kernel.Leveled.
func (*SecretGeneration) Level() uint { return levelOfLimits }

func (g *SecretGeneration) Fields(c *wire.Codec) {
	wire.Int(c, 1, &g.Number)
	c.String(2, &g.Check)
	wire.Int(c, 3, &g.Prepared)
	wire.Sub(c, 4, &g.By, g.By != Actor{}, (*Actor).Fields)
	c.Duration(5, &g.Overlap, time.Millisecond)
	c.Strings(6, &g.Holders)
	wire.Int(c, 7, &g.Activated)
	wire.Int(c, 8, &g.Until)
	wire.Int(c, 9, &g.Ended)
	wire.Sub(c, 10, &g.EndedBy, g.EndedBy != Actor{}, (*Actor).Fields)
	wire.Sub(c, 11, &g.LastUse, g.LastUse != SecretUse{}, (*SecretUse).Fields)
}

// Pending reports whether the generation is being distributed to the nodes.
func (g *SecretGeneration) Pending() bool { return g.Activated == 0 && g.Ended == secretNeverEnded }

// Signs reports whether the generation is the one that signs.
func (g *SecretGeneration) Signs() bool {
	return g.Activated != 0 && g.Until == 0 && g.Ended == secretNeverEnded
}

// Accepted reports whether the generation's signatures are accepted at a time.
func (g *SecretGeneration) Accepted(now domain.Time) bool {
	return g.Ended == secretNeverEnded && (g.Until == 0 || now < g.Until)
}

// SecretGeneration returns the number of the generation of the cell's secret from which the key's secret is derived.
func (k *Key) SecretGeneration() uint32 { return max(k.Generation, firstSecret) }

// recorded returns the generations. Before the first rotation, this is one generation without a record of its own.
func (c *State) recorded() []SecretGeneration {
	if x := c.Records.TakenOver; len(c.secrets) == 0 && x != nil {
		return []SecretGeneration{{Number: firstSecret, Check: x.Secret, Prepared: x.At, Activated: x.At}}
	}
	return c.secrets
}

// signing returns the number of the generation that signs, in the form stored in keys: 0 for the first.
func (c *State) signing() uint32 {
	for _, g := range c.secrets {
		if g.Signs() && g.Number != firstSecret {
			return g.Number
		}
	}
	return 0
}

func secretAt(all []SecretGeneration, number uint32) int {
	return slices.IndexFunc(all, func(g SecretGeneration) bool { return g.Number == number })
}

// PrepareSecret starts a rotation with a generation that the node has in its data directory. The generation signs after ActivateSecret.
type PrepareSecret struct {
	Number  uint32 // one more than the last one; 0: any, to ask whether a rotation could start
	Check   string
	Node    string        // the node that has it
	Overlap time.Duration // 0: SecretOverlap
	By      Actor

	// Result
	Generation SecretGeneration
	Changed    uint64 // number of the journal entry
}

func (cmd *PrepareSecret) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.Overlap == 0 {
		cmd.Overlap = SecretOverlap
	}
	all := t.recorded()
	live, last := 0, uint32(0)
	for i := range all {
		g := &all[i]
		last = max(last, g.Number)
		if g.Pending() {
			return domain.Refuse(domain.Conflict, "generation %d of the secret is being distributed to the nodes (since %s): wait for it, or give it up with `muster secret retire %[1]d`",
				g.Number, g.Prepared.Std().UTC().Format(time.RFC3339))
		}
		if g.Ended == secretNeverEnded {
			live++
		}
	}
	switch {
	case len(all) == 0:
		return domain.Refuse(domain.Conflict, "the access keys of this installation were not imported yet: start the service once")
	case cmd.Overlap < SecretOverlapMin || cmd.Overlap > SecretOverlapMax:
		return domain.Refuse(domain.Invalid, "overlap %s: want %s to %s, for which the present secret is still accepted", cmd.Overlap, SecretOverlapMin, SecretOverlapMax)
	case live >= SecretsMax:
		return domain.Refuse(domain.LimitExceeded, "%d generations of the secret are accepted; the limit is %d: wait for the date of last use of the oldest, or end it with `muster secret retire`", live, SecretsMax)
	case cmd.Number != last+1 || cmd.Check == "" || len(cmd.Check) > secretTextMax || cmd.Node == "" || len(cmd.Node) > secretTextMax:
		return domain.Refuse(domain.Conflict, "generation %d of the secret: the next one is %d", cmd.Number, last+1)
	case slices.ContainsFunc(all, func(g SecretGeneration) bool { return g.Check == cmd.Check }):
		return domain.Refuse(domain.Invalid, "generation %d has the secret of an earlier one", cmd.Number)
	}
	for len(all) >= secretsKept {
		at := slices.IndexFunc(all, func(g SecretGeneration) bool {
			return g.Ended != secretNeverEnded && t.Records.workingOf(g.Number) == 0
		})
		if at < 0 {
			return domain.Refuse(domain.LimitExceeded, "%d generations of the secret are recorded, and working access keys are derived from each: rotate the oldest keys first", len(all))
		}
		t.Emit(&SecretForgotten{all[at].Number})
		all = t.recorded()
	}
	t.Emit(&SecretPrepared{SecretGeneration{
		Number: cmd.Number, Check: cmd.Check, Prepared: t.Now, By: cmd.By.Cut(), Overlap: cmd.Overlap, Holders: []string{cmd.Node},
	}})
	all = t.recorded()
	cmd.Generation, cmd.Changed = all[len(all)-1], t.Number()
	return nil
}

// HoldSecret records that a node has a generation in its data directory. It changes nothing once the generation signs.
type HoldSecret struct {
	Number uint32
	Check  string
	Node   string
}

func (cmd *HoldSecret) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	at := secretAt(t.secrets, cmd.Number)
	switch {
	case at < 0 || t.secrets[at].Check != cmd.Check:
		return domain.Refuse(domain.NotFound, "there is no generation %d of the secret with this check", cmd.Number)
	case !t.secrets[at].Pending() || slices.Contains(t.secrets[at].Holders, cmd.Node):
		return nil
	case cmd.Node == "" || len(cmd.Node) > secretTextMax || len(t.secrets[at].Holders) >= secretNodesMax:
		return domain.Refuse(domain.Invalid, "node %.100q: want a name of 1 to %d bytes, and at most %d nodes", cmd.Node, secretTextMax, secretNodesMax)
	}
	t.Emit(&SecretHeld{cmd.Number, cmd.Node})
	return nil
}

// ActivateSecret makes the pending generation sign, if the given nodes have it. From then on, the previous generation has a date of last use.
type ActivateSecret struct {
	Number uint32
	Nodes  []string
}

func (cmd *ActivateSecret) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	at := secretAt(t.secrets, cmd.Number)
	if at < 0 || !t.secrets[at].Pending() {
		return nil // it already signs, or was given up
	}
	g := &t.secrets[at]
	for _, node := range cmd.Nodes {
		if !slices.Contains(g.Holders, node) {
			return domain.Refuse(domain.Conflict, "node %.100s does not have generation %d of the secret yet", node, cmd.Number)
		}
	}
	t.Emit(&SecretActivated{Number: g.Number, At: t.Now, Until: t.Now.Add(g.Overlap)})
	return nil
}

// EndSecret stops accepting an earlier generation's signatures before its date of last use, or gives up a pending generation. Access keys derived
// from it stay valid unless the command revokes them. A repeat changes nothing.
type EndSecret struct {
	Number uint32
	Revoke bool // also revoke the access keys derived from it
	Force  bool // even if no admin key is left
	By     Actor

	// Result
	Generation SecretGeneration
	Keys       []Key // derived from it and valid or, with Revoke, valid until now
	Changed    uint64
}

func (cmd *EndSecret) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	all := t.recorded()
	at := secretAt(all, cmd.Number)
	if at < 0 {
		return domain.Refuse(domain.NotFound, "there is no generation %d of the secret", cmd.Number)
	}
	g := all[at]
	if g.Signs() {
		return domain.Refuse(domain.Conflict, "generation %d of the secret is the one that signs: begin with `muster secret rotate`", cmd.Number)
	}
	cmd.Keys = t.keysOf(cmd.Number)
	if cmd.Revoke && len(cmd.Keys) > 0 {
		admins := 0
		for i := range cmd.Keys {
			if cmd.Keys[i].Role == Admin {
				admins++
			}
		}
		if admins > 0 && admins == t.Records.Admins() && !cmd.Force {
			return domain.Refuse(domain.Conflict, "all access keys with the role admin are derived from generation %d of the secret: create another one first, or force it", cmd.Number)
		}
	}
	if g.Ended == secretNeverEnded {
		t.Emit(&SecretEnded{cmd.Number, t.Now, cmd.By.Cut()})
	}
	if cmd.Revoke {
		for i := range cmd.Keys {
			t.Emit(&AccessKeyRevoked{cmd.Keys[i].ID, t.Now, cmd.By.Cut()})
		}
	}
	all = t.recorded()
	cmd.Generation, cmd.Changed = all[secretAt(all, cmd.Number)], t.Number()
	return nil
}

// EndOldSecrets ends the generations that have reached their date of last use.
type EndOldSecrets struct{}

func (*EndOldSecrets) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	for _, g := range slices.Clone(t.secrets) {
		if g.Ended == secretNeverEnded && !g.Accepted(t.Now) {
			t.Emit(&SecretEnded{Number: g.Number, At: t.Now})
		}
	}
	return nil
}

// NoteSecretUses records the latest uses of earlier generations observed by a node: at most one per minute and generation.
type NoteSecretUses struct{ Uses []SecretUse }

func (cmd *NoteSecretUses) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if len(cmd.Uses) > secretUsesMax {
		return domain.Refuse(domain.Invalid, "%d uses of the secret: want at most %d", len(cmd.Uses), secretUsesMax)
	}
	e := &SecretsUsed{}
	for _, use := range cmd.Uses {
		at := secretAt(t.secrets, use.Number)
		if at < 0 || t.secrets[at].Until == 0 || use.At.Sub(t.secrets[at].LastUse.At) < UsedEvery ||
			slices.ContainsFunc(e.Uses, func(x SecretUse) bool { return x.Number == use.Number }) {
			continue
		}
		use.Purpose = use.Purpose[:min(len(use.Purpose), secretTextMax)]
		e.Uses = append(e.Uses, use)
	}
	if len(e.Uses) > 0 {
		t.Emit(e)
	}
	return nil
}

func (c *State) applySecret(event kernel.Event) {
	c.Touch()
	all := slices.Clone(c.recorded()) // a snapshot may share the slice
	change := func(number uint32, f func(g *SecretGeneration)) {
		if at := secretAt(all, number); at >= 0 {
			f(&all[at])
		}
	}
	switch e := event.(type) {
	case *SecretPrepared:
		all = append(all, e.Generation)
	case *SecretHeld:
		change(e.Number, func(g *SecretGeneration) { g.Holders = append(slices.Clone(g.Holders), e.Node) })
	case *SecretActivated:
		for i := range all {
			if all[i].Signs() {
				all[i].Until = e.Until
			}
		}
		change(e.Number, func(g *SecretGeneration) { g.Activated, g.Holders = e.At, nil })
	case *SecretEnded:
		change(e.Number, func(g *SecretGeneration) { g.Ended, g.EndedBy, g.Holders = e.At, e.By, nil })
	case *SecretsUsed:
		for _, use := range e.Uses {
			change(use.Number, func(g *SecretGeneration) { g.LastUse = SecretUse{At: use.At, Purpose: use.Purpose} })
		}
	case *SecretForgotten:
		all = slices.DeleteFunc(all, func(g SecretGeneration) bool { return g.Number == e.Number })
	}
	c.secrets = all
}

// keysOf returns the valid access keys derived from a generation, in creation order.
func (c *State) keysOf(number uint32) (all []Key) {
	c.Records.Keys.Since(catalog.Place{}, func(k *Key) bool {
		if k.Works() && k.SecretGeneration() == number {
			all = append(all, *k)
		}
		return true
	})
	return all
}

// SecretGenerations returns the generations of the cell's secret, oldest first; none before the cell owns its access keys.
func (v *View) SecretGenerations() []SecretGeneration {
	v.SawAll()
	return slices.Clone(v.c.recorded())
}

// KeysOfSecret returns the valid access keys derived from a generation of the cell's secret, in creation order.
func (v *View) KeysOfSecret(number uint32) []Key {
	v.SawAll()
	return v.c.keysOf(number)
}

// SecretStanding is a generation and whether it is still needed.
type SecretStanding struct {
	SecretGeneration
	Keys   int  // valid access keys derived from it
	Needed bool // to sign, to verify its signatures, or to derive the secrets of access keys
}

// SecretStandings returns the generations of the cell's secret, as SecretGenerations does.
func (v *View) SecretStandings() (all []SecretStanding) {
	v.SawAll()
	for _, g := range v.c.recorded() {
		n := v.c.Records.workingOf(g.Number)
		all = append(all, SecretStanding{g, n, g.Ended == secretNeverEnded || n > 0})
	}
	return all
}

// SecretSummary summarizes the generations of the secret.
type SecretSummary struct {
	Generations int         // number in use
	Since       domain.Time // when the signing generation began to sign
	NextEnds    domain.Time // when the next earlier generation ends; 0: none is accepted
	Keys        int         // valid access keys derived from earlier generations
}

// SecretSummary returns the figures of SecretStandings.
func (v *View) SecretSummary() (x SecretSummary) {
	for _, g := range v.SecretStandings() {
		if g.Signs() {
			x.Since = g.Activated
		} else {
			x.Keys += g.Keys
		}
		if g.Ended != secretNeverEnded {
			continue
		}
		x.Generations++
		if g.Until != 0 && (x.NextEnds == 0 || g.Until < x.NextEnds) {
			x.NextEnds = g.Until
		}
	}
	return x
}
