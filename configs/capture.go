package configs

// Capture writes a share of the requests to a file that sluice replay reads.
type Capture struct {
	// File is where to; what is there stays, requests are appended. Its mode is
	// 0600. Without it, the default, nothing is written.
	File string `koanf:"file"`
	// Sample is the part of the requests that is written, by session or body.
	// Default 1%.
	Sample Share `koanf:"sample"`
	// MaxBytes is the size of the file at which writing stops, at least 4KiB.
	// Default 1GiB.
	MaxBytes Bytes `koanf:"max_bytes"`
	// Redact replaces texts of the bodies with filler of the same length; keys,
	// numbers, the model and what else rules look at stay. Default true.
	Redact bool `koanf:"redact"`
}

func (v *validator) capture(c *Capture) {
	v.share("capture.sample", c.Sample)
	if c.File != "" && c.Sample == 0 {
		v.fail("capture.sample", "must be above 0; leave out file to write nothing")
	}
	if c.MaxBytes < 4<<10 {
		v.fail("capture.max_bytes", "must be at least 4KiB, got %s", c.MaxBytes)
	}
}
