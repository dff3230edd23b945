package node

import "context"

const VoidAfter = voidAfter

// LockAdmission keeps nodes from being added or removed until unlock is called.
func (n *Node) LockAdmission(ctx context.Context) (unlock func(), err error) {
	return n.unlockAdmission, n.lockAdmission(ctx)
}

// AnswerAuthorities answers the leader's question.
func (n *Node) AnswerAuthorities(ctx context.Context, store []byte) ([]byte, error) {
	return n.answerAuthorities(ctx, store)
}

// ReplaceAuthority replaces the authority as if this node led.
func (n *Node) ReplaceAuthority(ctx context.Context) error { return n.replaceAuthority(ctx) }

// HoldAuthority keeps the node from answering the leader's questions until release is called.
func (n *Node) HoldAuthority() (release func()) {
	n.taking.Lock()
	return n.taking.Unlock
}
