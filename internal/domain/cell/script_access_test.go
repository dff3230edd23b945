package cell

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// accessCommand makes a command about access keys; nil when it is another one.
func (s *script) accessCommand(verb string, a arguments) kernel.Command {
	by := access.Actor{Principal: a.or("by", "ops"), Door: "operator"}
	role, _ := access.ParseRole(a.or("role", "backend"))
	switch verb {
	case "take-over":
		cmd := &access.TakeOverAccessKeys{Digest: a.or("file", ""), Secret: "check"}
		for _, id := range a.list("keys") {
			cmd.Keys = append(cmd.Keys, access.Key{ID: id, Role: role, Created: s.now.Add(-a.duration("age"))})
		}
		return cmd
	case "create-key":
		return &access.CreateAccessKey{Key: access.Key{ID: a.or("id", ""), Role: role, Name: a.or("name", ""), CreatedBy: by, Expires: s.expiry(a), Sources: a.list("sources")}}
	case "raise-level":
		return &kernel.RaiseLevel{To: kernel.Level}
	case "rotate-key":
		_, forever := a.find("forever")
		return &access.RotateAccessKey{ID: a.or("id", ""), Overlap: a.duration("overlap"), Forever: forever,
			Successor: access.Key{ID: a.or("successor", ""), CreatedBy: by, Expires: s.expiry(a), Sources: a.list("sources")}}
	case "limit-key":
		_, forever := a.find("forever")
		_, anywhere := a.find("anywhere")
		_, force := a.find("force")
		return &access.LimitAccessKey{ID: a.or("id", ""), Expires: s.expiry(a), Forever: forever, Sources: a.list("sources"), Anywhere: anywhere, By: by, Force: force}
	case "finish-rotation":
		return &access.FinishRotation{ID: a.or("id", ""), By: by}
	case "use-keys":
		cmd := &access.NoteKeyUses{}
		for _, id := range a.list("ids") {
			cmd.Uses = append(cmd.Uses, access.Use{Key: id, At: s.now, Address: "192.0.2.1", Operation: a.or("operation", "ListFleets")})
		}
		return cmd
	case "prepare-secret":
		return &access.PrepareSecret{Number: a.generation(), Check: a.or("check", ""), Node: a.or("node", "n1"), Overlap: a.duration("overlap"), By: by}
	case "hold-secret":
		return &access.HoldSecret{Number: a.generation(), Check: a.or("check", ""), Node: a.or("node", "n1")}
	case "activate-secret":
		return &access.ActivateSecret{Number: a.generation(), Nodes: a.list("nodes")}
	case "end-secret":
		_, revoke := a.find("revoke")
		_, force := a.find("force")
		return &access.EndSecret{Number: a.generation(), Revoke: revoke, Force: force, By: by}
	case "end-old-secrets":
		return &access.EndOldSecrets{}
	case "use-secret":
		return &access.NoteSecretUses{Uses: []access.SecretUse{{Number: a.generation(), At: s.now, Purpose: a.or("purpose", "token")}}}
	case "note-backup":
		return &access.NoteBackup{Backup: access.Backup{At: s.now.Add(a.duration("later")), Entry: uint64(a.generation()), To: a.or("to", "")}}
	case "accept-loss":
		return &access.AcceptLoss{Part: a.or("part", ""), What: a.or("what", ""), Secret: a.or("secret", "")}
	case "revoke-key":
		_, force := a.find("force")
		return &access.RevokeAccessKey{ID: a.or("id", ""), By: by, Force: force}
	}
	return nil
}

// generation returns the number of a generation of the secret.
func (a arguments) generation() uint32 {
	n, err := strconv.ParseUint(a.or("no", "0"), 10, 32)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

func (s *script) showSecrets(out io.Writer) {
	v := s.cell.View()
	for _, g := range v.SecretStandings() {
		fmt.Fprintf(out, "%d %s%s%s%s keys=%d%s", g.Number, g.Check, when(g.Pending(), " pending"), when(g.Signs(), " signs"), when(g.Until != 0, " until "+since(int64(g.Until))), g.Keys, when(!g.Needed, " destroyed"))
		if len(g.Holders) > 0 {
			fmt.Fprintf(out, " at %s", strings.Join(g.Holders, ","))
		}
		if g.Ended != 0 {
			fmt.Fprintf(out, " ended at %s%s", since(int64(g.Ended)), when(g.EndedBy.Principal != "", " by "+g.EndedBy.Principal))
		}
		if g.LastUse.At != 0 {
			fmt.Fprintf(out, " used at %s for %s", since(int64(g.LastUse.At)), g.LastUse.Purpose)
		}
		fmt.Fprintln(out)
	}
}

// expiry returns the time at which a key expires, from an argument with its validity.
func (s *script) expiry(a arguments) domain.Time {
	if _, ok := a.find("expires"); !ok {
		return 0
	}
	return s.now.Add(a.duration("expires"))
}

func (s *script) showKeys(out io.Writer) {
	v := s.cell.View()
	for _, k := range v.AccessKeys() {
		fmt.Fprintf(out, "%s %s%s", k.ID, k.Role, when(k.Name != "", " "+k.Name))
		if k.CreatedBy.Principal != "" {
			fmt.Fprintf(out, " created by %s", k.CreatedBy.Principal)
		}
		if k.Expires != 0 {
			fmt.Fprintf(out, " until %s", since(int64(k.Expires)))
		}
		if len(k.Sources) > 0 {
			fmt.Fprintf(out, " from %s", strings.Join(k.Sources, ","))
		}
		fmt.Fprintf(out, "%s%s", when(k.Replaces != "", " replaces "+k.Replaces), when(k.Successor != "", " replaced by "+k.Successor))
		if k.LastUse.At != 0 {
			fmt.Fprintf(out, " used at %s for %s from %s", since(int64(k.LastUse.At)), k.LastUse.Operation, k.LastUse.Address)
		}
		if k.Expired() {
			fmt.Fprint(out, " expired")
		} else if !k.Works() {
			fmt.Fprintf(out, " revoked by %s at %s", k.RevokedBy.Principal, since(int64(k.Revoked)))
		}
		fmt.Fprintln(out)
	}
}

// accessDetails returns an event about access keys in the words of the scripts.
func accessDetails(e kernel.Event) string {
	switch e := e.(type) {
	case *access.AccessKeysTakenOver:
		return fmt.Sprintf("file=%s keys=%d", e.TakenOver.Digest, len(e.Keys))
	case *access.AccessKeyCreated:
		return fmt.Sprintf("%s %s by %s", e.Key.ID, e.Key.Role, e.Key.CreatedBy.Principal)
	case *access.AccessKeyRevoked:
		return fmt.Sprintf("%s at %s by %s", e.ID, since(int64(e.At)), e.By.Principal)
	case *access.AccessKeyExpired:
		return e.ID
	case *access.AccessKeyRotated:
		return fmt.Sprintf("%s successor=%s%s", e.ID, e.Successor, when(e.Expires != 0, " until="+since(int64(e.Expires))))
	case *access.AccessKeyLimited:
		return fmt.Sprintf("%s%s%s", e.ID, when(e.Expires != 0, " until="+since(int64(e.Expires))), when(len(e.Sources) > 0, " from="+strings.Join(e.Sources, ",")))
	case *access.AccessKeysUsed:
		text := ""
		for _, use := range e.Uses {
			text += fmt.Sprintf("%s by %s ", use.Key, use.Operation)
		}
		return strings.TrimSpace(text)
	case *access.AccessKeysForgotten:
		return fmt.Sprint(e.IDs)
	case *access.SecretPrepared:
		return fmt.Sprintf("%d %s by %s", e.Generation.Number, e.Generation.Check, e.Generation.By.Principal)
	case *access.SecretHeld:
		return fmt.Sprintf("%d at %s", e.Number, e.Node)
	case *access.SecretActivated:
		return fmt.Sprintf("%d, the one before until %s", e.Number, since(int64(e.Until)))
	case *access.SecretEnded:
		return fmt.Sprintf("%d%s", e.Number, when(e.By.Principal != "", " by "+e.By.Principal))
	case *access.SecretsUsed:
		return fmt.Sprint(e.Uses[0].Number, " for ", e.Uses[0].Purpose)
	case *access.SecretForgotten:
		return fmt.Sprint(e.Number)
	case *access.BackupMade:
		return fmt.Sprintf("%s with entry %d, begun %s", e.Backup.To, e.Backup.Entry, since(int64(e.Backup.At)))
	case *access.LossAccepted:
		return fmt.Sprintf("%s %s%s", e.Loss.Part, e.Loss.What, when(e.Secret != "", " secret="+e.Secret))
	}
	return ""
}

// checkAccess counts the keys that work again.
func checkAccess(c *Cell) error {
	working, admins := 0, 0
	for _, k := range c.access.Records.Keys.All() {
		if k.Works() {
			working++
			if k.Role == access.Admin {
				admins++
			}
		}
	}
	if working != c.access.Records.Working() || admins != c.access.Records.Admins() {
		return fmt.Errorf("%d access keys work, %d of them admins; counted %d and %d", c.access.Records.Working(), c.access.Records.Admins(), working, admins)
	}
	return nil
}
