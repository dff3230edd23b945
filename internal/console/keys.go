package console

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/keyring"
)

// keyList has all access keys, also revoked ones, without their secrets.
var keyList = list[keyring.Document]{
	name: "access-keys", label: "Access keys", most: 200, empty: "There is no access key.",
	columns: []column[keyring.Document]{
		{name: "id", head: "Access key", value: func(k *keyring.Document) value { return code(k.ID) }},
		{name: "name", head: "Name", value: func(k *keyring.Document) value { return words(k.Name) }},
		{name: "role", head: "Role", value: func(k *keyring.Document) value { return words(k.Role.String()) }},
		{name: "state", head: "State", value: func(k *keyring.Document) value {
			if k.Works() {
				return state("active")
			}
			return state("revoked")
		}},
		{name: "created", head: "Created", value: func(k *keyring.Document) value { return moment(k.Created) }},
		{name: "created-by", head: "Created by", value: func(k *keyring.Document) value { return words(k.CreatedBy.String()) }},
		{name: "revoked", head: "Revoked", value: func(k *keyring.Document) value { return moment(k.Revoked) }},
		{name: "revoked-by", head: "Revoked by", value: func(k *keyring.Document) value { return words(k.RevokedBy.String()) }},
		{name: "account", head: "Account", hidden: true, value: func(k *keyring.Document) value { return words(k.Account) }},
	},
	id: func(k *keyring.Document) string { return k.ID },
	offers: func(k *keyring.Document) []offered {
		if !k.Works() {
			return nil
		}
		return []offered{{action: "revoke-key", id: k.ID}}
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []keyring.Document, next url.Values, err error) {
		if err := d.forAdmins(r, "access keys", "muster:Service.ListKeys"); err != nil {
			return nil, nil, err
		}
		var keys []access.Key
		err = d.engine.Read(r.Context(), func(v *cell.View) error { keys = v.AccessKeys(); return nil })
		from := place(query)
		keys = slices.DeleteFunc(keys, func(k access.Key) bool {
			return k.Created < from.Created || k.Created == from.Created && k.ID <= from.ID
		})
		keys, next = cut(keys, most, func(k *access.Key) url.Values { return since(k.Created, k.ID) })
		return keyring.Documents(keys), next, err
	},
}
