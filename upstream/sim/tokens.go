package sim

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"
)

// The tokenizer of the simulation: a token is a word with the white space before
// it, cut so that no token is longer than maxToken bytes. A token's id holds its
// bytes, so that it can be read back without a vocabulary.
const maxToken = 6

// nextToken returns the length of the first token of s, which is not empty.
func nextToken(s string) int {
	word := false // a byte of the word itself was seen
	for i, r := range s {
		space := r == ' ' || r == '\n' || r == '\t' || r == '\r'
		if i > 0 && (word && space || i+utf8.RuneLen(max(r, 0)) > maxToken) {
			return i
		}
		word = word || !space
	}
	return len(s)
}

func tokenize(s string) []string {
	var tokens []string
	for len(s) > 0 {
		n := nextToken(s)
		tokens = append(tokens, s[:n])
		s = s[n:]
	}
	return tokens
}

func countTokens(s string) (n int) {
	for ; len(s) > 0; n++ {
		s = s[nextToken(s):]
	}
	return n
}

// tokenID returns the id of a token: its bytes, behind a bit that marks their
// number. Ids are below 2^49, so that any JSON reader holds them.
func tokenID(token string) int64 {
	id := int64(1)
	for i := range len(token) {
		id = id<<8 | int64(token[i])
	}
	return id
}

func tokenIDs(tokens []string) []int64 {
	ids := make([]int64, len(tokens))
	for i, t := range tokens {
		ids[i] = tokenID(t)
	}
	return ids
}

// detokenize returns the text of ids. Foreign ids read as " <id>".
func detokenize(ids []int64) string {
	var s strings.Builder
	for _, id := range ids {
		n := bits.Len64(uint64(id)) - 1
		if id <= 1 || n%8 != 0 || n > 8*maxToken {
			fmt.Fprintf(&s, " <%d>", id)
			continue
		}
		for n -= 8; n >= 0; n -= 8 {
			s.WriteByte(byte(id >> n))
		}
	}
	return s.String()
}

// vocabulary holds words that are one token each, also with a space before them.
var vocabulary = strings.Fields("the quick brown fox jumps over a lazy dog while many small boats drift past old stone walls and birds sing in tall trees by the sea")

// words returns a text of n tokens that depends on n and the index of the choice.
func words(n, index int) string {
	var s strings.Builder
	for i := range n {
		if i > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(vocabulary[(i+7*index)%len(vocabulary)])
	}
	return s.String()
}

// cacheBlock is the number of tokens of a block of the prefix cache, as in vLLM.
const cacheBlock = 16

// maxBlocks bounds the blocks that the prefix cache remembers; when it is full
// it forgets them all.
const maxBlocks = 1 << 16

// prefixCache remembers which prompts the engine has seen, as the KV cache of a
// real one does. The zero value is ready. Safe for concurrent use.
type prefixCache struct {
	mu     sync.Mutex
	seed   maphash.Seed
	blocks map[uint64]struct{}
}

// see counts the tokens of a prompt and those of them that stand in whole blocks
// of its longest known prefix, and remembers its blocks.
func (c *prefixCache) see(prompt string) (tokens, cached int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks == nil {
		c.seed = maphash.MakeSeed()
	}
	if len(c.blocks) >= maxBlocks || c.blocks == nil {
		c.blocks = map[uint64]struct{}{}
	}
	var h maphash.Hash
	h.SetSeed(c.seed)
	known := true
	for len(prompt) > 0 {
		n := nextToken(prompt)
		h.WriteString(prompt[:n])
		prompt = prompt[n:]
		tokens++
		if tokens%cacheBlock != 0 {
			continue
		}
		_, hit := c.blocks[h.Sum64()]
		if known = known && hit; known {
			cached = tokens
		} else if len(c.blocks) < maxBlocks {
			c.blocks[h.Sum64()] = struct{}{}
		}
	}
	// An engine computes at least the last token of a prompt.
	return tokens, min(cached, max(tokens-1, 0)/cacheBlock*cacheBlock)
}
