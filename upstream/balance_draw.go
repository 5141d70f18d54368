package upstream

// random draws a worker by weight.
type random struct{ *roster }

func (c random) choose(*Key, *Worker) *Worker { return c.draw() }

// powerOfTwo draws two workers by weight and takes the less loaded one. What
// two draws know keeps the largest load near log log n above the mean, where
// one draw is off by log n (Mitzenmacher 2001); more draws add little.
type powerOfTwo struct{ *roster }

func (c powerOfTwo) choose(_ *Key, avoid *Worker) *Worker {
	a, b := c.drawTwo()
	for range 3 { // a worker drawn twice is no choice
		if a != b {
			break
		}
		b = c.draw()
	}
	if a == avoid || b != avoid && lighter(b, a) {
		return b
	}
	return a
}
