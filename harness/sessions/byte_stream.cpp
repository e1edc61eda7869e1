#include "harness/sessions/byte_stream.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr std::size_t input_bytes = std::size_t{256} << 10;

struct FileDescriptor {
  int fd;
  explicit FileDescriptor(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
};

// The file itself. The first bytes can be looked at before they are read, so pipes work too.
class RawFile {
 public:
  explicit RawFile(const std::string& path) : path_(path), file_(path), buffer_(input_bytes) {
    if (file_.fd < 0) throw UsageError(path + ": cannot open: " + std::strerror(errno));
    // A pipe may hand over its first bytes one by one; four are what the magic numbers need.
    while (end_ < 4 && fill()) {
    }
    if (end_ == 0) throw UsageError(path + ": the file is empty");
  }

  // Unread bytes, at least one unless the file has ended.
  std::string_view peek() {
    if (begin_ == end_) {
      begin_ = end_ = 0;
      fill();
    }
    return {buffer_.data() + begin_, end_ - begin_};
  }
  void consume(std::size_t bytes) { begin_ += bytes; }

 private:
  bool fill() {
    for (;;) {
      const ssize_t got = ::read(file_.fd, buffer_.data() + end_, buffer_.size() - end_);
      if (got >= 0) {
        end_ += static_cast<std::size_t>(got);
        return got > 0;
      }
      if (errno == EINTR) continue;
      const int code = errno;
      if (code == EISDIR) throw UsageError(path_ + ": is a directory; name a session file");
      throw std::system_error(code, std::generic_category(), "read " + path_);
    }
  }

  std::string path_;
  FileDescriptor file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(std::unique_ptr<RawFile> file) : file_(std::move(file)) {}
  std::size_t read(char* to, std::size_t capacity) override {
    const std::string_view bytes = file_->peek();
    const std::size_t n = std::min(capacity, bytes.size());
    std::memcpy(to, bytes.data(), n);
    file_->consume(n);
    return n;
  }
  const char* format() const override { return "plain"; }

 private:
  std::unique_ptr<RawFile> file_;
};

// RFC 1952, any number of members one after another.
class GzipStream : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<RawFile> file) : file_(std::move(file)) {
    if (inflateInit2(&z_, 15 + 16) != Z_OK) throw std::bad_alloc();  // 15: largest window; 16: gzip headers only
  }
  ~GzipStream() override { inflateEnd(&z_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(char* to, std::size_t capacity) override {
    capacity = std::min(capacity, std::size_t{1} << 30);
    z_.next_out = reinterpret_cast<Bytef*>(to);
    z_.avail_out = static_cast<uInt>(capacity);
    while (z_.avail_out == capacity) {
      const std::string_view in = file_->peek();
      if (in.empty()) {
        if (inside_) throw UsageError("the gzip data is truncated");
        return 0;
      }
      if (!inside_) {
        if (inflateReset(&z_) != Z_OK) throw UsageError("the gzip data cannot be read");
        inside_ = true;
      }
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      z_.avail_in = static_cast<uInt>(in.size());
      const int status = inflate(&z_, Z_NO_FLUSH);
      file_->consume(in.size() - z_.avail_in);
      if (status == Z_STREAM_END) {
        inside_ = false;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw UsageError(std::string("the gzip data is damaged: ") + (z_.msg ? z_.msg : "unknown error"));
      }
    }
    return capacity - z_.avail_out;
  }
  const char* format() const override { return "gzip"; }

 private:
  std::unique_ptr<RawFile> file_;
  z_stream z_{};
  bool inside_ = false;  // between a member's header and its trailer
};

// RFC 8878, any number of frames. libzstd refuses windows above 128 MiB, which bounds the memory.
class ZstdStream : public ByteStream {
 public:
  explicit ZstdStream(std::unique_ptr<RawFile> file) : file_(std::move(file)), z_(ZSTD_createDStream()) {
    if (!z_) throw std::bad_alloc();
  }
  ~ZstdStream() override { ZSTD_freeDStream(z_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  std::size_t read(char* to, std::size_t capacity) override {
    ZSTD_outBuffer out{to, capacity, 0};
    while (out.pos == 0) {
      const std::string_view bytes = file_->peek();
      // Without input the decoder may still hold output; only when it yields none is the file too short.
      ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
      if (bytes.empty() && !inside_) return 0;
      const std::size_t status = ZSTD_decompressStream(z_, &out, &in);
      if (ZSTD_isError(status)) {
        throw UsageError(std::string("the zstd data is damaged or not supported: ") + ZSTD_getErrorName(status));
      }
      file_->consume(in.pos);
      inside_ = status != 0;
      if (bytes.empty() && inside_ && out.pos == 0) throw UsageError("the zstd data is truncated");
    }
    return out.pos;
  }
  const char* format() const override { return "zstd"; }

 private:
  std::unique_ptr<RawFile> file_;
  ZSTD_DStream* z_;
  bool inside_ = false;  // a frame has begun and is not complete
};

bool is_zstd(std::string_view bytes) {
  if (bytes.size() < 4) return false;
  std::array<unsigned char, 4> b{};
  std::memcpy(b.data(), bytes.data(), 4);
  const bool frame = b[0] == 0x28 && b[1] == 0xB5 && b[2] == 0x2F && b[3] == 0xFD;
  const bool skippable = (b[0] & 0xF0) == 0x50 && b[1] == 0x2A && b[2] == 0x4D && b[3] == 0x18;  // parallel compressors
  return frame || skippable;
}

}  // namespace

std::unique_ptr<ByteStream> open_byte_stream(const std::string& path) {
  auto file = std::make_unique<RawFile>(path);
  const std::string_view head = file->peek();
  if (head.substr(0, 2) == "\x1f\x8b") return std::make_unique<GzipStream>(std::move(file));
  if (is_zstd(head)) return std::make_unique<ZstdStream>(std::move(file));
  return std::make_unique<PlainStream>(std::move(file));
}

LineReader::LineReader(const std::string& path, std::size_t max_line_bytes)
    : path_(path), stream_(open_byte_stream(path)), max_line_bytes_(max_line_bytes), buffer_(input_bytes, '\0') {}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = begin_;
  for (;;) {
    const void* newline = end_ > searched ? std::memchr(buffer_.data() + searched, '\n', end_ - searched) : nullptr;
    std::size_t length =
        (newline ? static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.data()) : end_) - begin_;
    if (length > max_line_bytes_) {
      throw UsageError(path_ + ":" + std::to_string(number_ + 1) + ": the line is longer than " +
                       std::to_string(max_line_bytes_) + " bytes; is this a file with one session a line?");
    }
    if (newline || (ended_ && length > 0)) {
      line = std::string_view(buffer_.data() + begin_, length);
      begin_ += length + (newline ? 1 : 0);
      ++number_;
      return true;
    }
    if (ended_) return false;
    searched = end_;
    if (begin_ > 0) {  // keep the unfinished line only
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      searched -= begin_;
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() - end_ < input_bytes / 2) buffer_.resize(buffer_.size() * 2);
    try {
      const std::size_t got = stream_->read(buffer_.data() + end_, buffer_.size() - end_);
      end_ += got;
      ended_ = got == 0;
    } catch (const UsageError& e) {
      throw UsageError(path_ + ":" + std::to_string(number_ + 1) + ": " + e.what());
    }
  }
}

}  // namespace slacktier
