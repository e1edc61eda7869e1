#include "harness/sessions/session_json.hpp"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace slacktier {
namespace {

enum class Place { start, session, turns, turn, ids, ended };
enum class Field { none, id, group, turns, role, ids, ignored };

bool parse_role(const std::string& text, Role& role) {
  for (Role r : {Role::system, Role::user, Role::assistant, Role::tool}) {
    if (text == to_string(r)) {
      role = r;
      return true;
    }
  }
  return false;
}

}  // namespace

// nlohmann's event interface: no document is built, ids go straight into the session's vectors.
struct SessionParser::Events : nlohmann::json_sax<nlohmann::json> {
  std::uint64_t id_limit = 0;
  Session* session = nullptr;
  std::size_t turn_count = 0;
  Place place = Place::start;
  Field field = Field::none;
  unsigned seen = 0;       // fields of the session object
  unsigned turn_seen = 0;  // fields of the turn object
  bool turn_text = false;  // the turn came as text
  int ignored_depth = 0;   // nesting inside the value of an unknown key
  std::string error;

  static unsigned bit(Field f) { return 1u << static_cast<unsigned>(f); }

  std::string where() const {
    std::string text;
    if (place == Place::turn || place == Place::ids) {
      text = "turns[" + std::to_string(turn_count - 1) + "]";
      if (place == Place::ids) return text + ".ids[" + std::to_string(session->turns[turn_count - 1].ids.size()) + "]";
    } else if (place == Place::turns) {
      return "turns[" + std::to_string(turn_count) + "]";
    } else if (place != Place::session) {
      return "the line";
    }
    const char* names[] = {"", "id", "group", "turns", "role", "ids", ""};
    const std::string name = names[static_cast<int>(field)];
    return text + (text.empty() || name.empty() ? "" : ".") + name;
  }
  const char* expected() const {
    switch (place) {
      case Place::turns:
        return "an object with role and ids";
      case Place::ids:
        return "a token id";
      case Place::session:
      case Place::turn:
        return field == Field::turns || field == Field::ids ? "an array" : "a string";
      default:
        return "an object with id, group and turns";
    }
  }
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
  bool wrong_type(const char* got) { return fail(where() + " is " + got + "; it must be " + expected()); }

  // A scalar in the place of something else; fine inside ignored values.
  bool scalar(const char* got) {
    if (ignored_depth > 0) return true;
    if ((place == Place::session || place == Place::turn) && field == Field::ignored) return true;
    return wrong_type(got);
  }

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool binary(binary_t&) override { return scalar("binary"); }
  bool number_float(number_float_t, const string_t& text) override {
    if (place == Place::ids && ignored_depth == 0)
      return fail(where() + " is " + text + "; a token id is a whole number" + limit());
    return scalar("a number");
  }
  bool number_integer(number_integer_t value) override {
    if (place == Place::ids && ignored_depth == 0)
      return fail(where() + " is " + std::to_string(value) + "; a token id is not negative");
    return scalar("a number");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place != Place::ids || ignored_depth > 0) return scalar("a number");
    if (value >= id_limit)
      return fail(where() + " is " + std::to_string(value) + "; a token id is a whole number" + limit());
    session->turns[turn_count - 1].ids.push_back(static_cast<std::uint32_t>(value));
    return true;
  }
  std::string limit() const { return " below " + std::to_string(id_limit) + " (the model's vocabulary)"; }

  bool string(string_t& value) override {
    if (ignored_depth > 0) return true;
    if (place == Place::session && field == Field::id) {
      session->id = value;
    } else if (place == Place::session && field == Field::group) {
      session->group = value;
    } else if (place == Place::turn && field == Field::role) {
      if (!parse_role(value, session->turns[turn_count - 1].role)) {
        return fail(where() + " is \"" + value.substr(0, 40) + "\"; roles are system, user, assistant and tool");
      }
    } else {
      return scalar("a string");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (ignored_depth > 0) return true;
    field = Field::ignored;
    unsigned* seen_here = &seen;
    if (place == Place::session) {
      if (name == "id") field = Field::id;
      if (name == "group") field = Field::group;
      if (name == "turns") field = Field::turns;
    } else {
      seen_here = &turn_seen;
      if (name == "role") field = Field::role;
      if (name == "ids") field = Field::ids;
      if (name == "text") turn_text = true;
    }
    if (field == Field::ignored) return true;
    if (*seen_here & bit(field)) return fail(where() + " is given twice");
    *seen_here |= bit(field);
    return true;
  }

  bool start_object(std::size_t) override {
    if (ignored_depth > 0) return ++ignored_depth, true;
    if (place == Place::start) {
      place = Place::session;
      return true;
    }
    if (place == Place::turns) {
      place = Place::turn;
      turn_seen = 0;
      turn_text = false;
      field = Field::none;
      if (session->turns.size() == turn_count) session->turns.emplace_back();
      session->turns[turn_count++].ids.clear();
      return true;
    }
    return scalar("an object") && (++ignored_depth, true);
  }
  bool end_object() override {
    if (ignored_depth > 0) return --ignored_depth, true;
    if (place == Place::turn) {
      field = Field::none;
      if (!(turn_seen & bit(Field::ids))) {
        return fail(where() + " has no ids" + (turn_text ? "; it is text: turn it into token ids first" : ""));
      }
      if (!(turn_seen & bit(Field::role))) return fail(where() + " has no role");
      place = Place::turns;
    } else {
      if (!(seen & bit(Field::id))) return fail("the session has no id");
      if (!(seen & bit(Field::turns))) return fail("the session has no turns");
      place = Place::ended;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (ignored_depth > 0) return ++ignored_depth, true;
    if (place == Place::session && field == Field::turns) {
      place = Place::turns;
      return true;
    }
    if (place == Place::turn && field == Field::ids) {
      place = Place::ids;
      return true;
    }
    return scalar("an array") && (++ignored_depth, true);
  }
  bool end_array() override {
    if (ignored_depth > 0) return --ignored_depth, true;
    if (place == Place::ids) {
      place = Place::turn;
    } else {
      place = Place::session;
      field = Field::turns;
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    std::string why = e.what();  // "[json.exception…] parse error at line 1, column 9: syntax error while …; last read: '…'"
    if (const auto at = why.find(": "); at != std::string::npos) why = why.substr(at + 2);
    if (const auto at = why.find("last read: '"); at != std::string::npos && why.size() > at + 60) {
      why = why.substr(0, at + 12) + "…" + why.substr(why.size() - 40);  // the token may be a whole text
    }
    return fail("torn or malformed JSON at byte " + std::to_string(position) + ": " + why);
  }
};

SessionParser::SessionParser(std::uint32_t raw_vocabulary) : events_(std::make_unique<Events>()) {
  events_->id_limit = raw_vocabulary ? raw_vocabulary : std::uint64_t{std::numeric_limits<std::uint32_t>::max()} + 1;
}
SessionParser::~SessionParser() = default;

std::string SessionParser::parse(std::string_view line, Session& session) {
  Events& e = *events_;
  e.session = &session;
  e.turn_count = 0;
  e.place = Place::start;
  e.field = Field::none;
  e.seen = 0;
  e.ignored_depth = 0;
  e.error.clear();
  session.id.clear();
  session.group.clear();
  const bool complete = nlohmann::json::sax_parse(line.data(), line.data() + line.size(), &e);
  session.turns.resize(e.turn_count);
  return complete ? std::string() : e.error;
}

}  // namespace slacktier
